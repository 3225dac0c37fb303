/** An authenticator, as far as a test needs one: it makes passkeys and signs with them (WebAuthn level 3), as right or wrong as told. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

export type Wrong = {
  readonly origin?: string
  readonly rpId?: string
  readonly challenge?: string
  readonly type?: string
  readonly crossOrigin?: boolean
  /** Of the authenticator data; present and verified without. */
  readonly flags?: number
  readonly userHandle?: string | null
  readonly id?: string
  readonly alg?: number
  /** Changes what is signed, after signing. */
  readonly tampered?: boolean
  readonly format?: string
}
export type TestPasskey = {
  /** The answer of `navigator.credentials.create()`, as JSON. */
  created(options: Options, wrong?: Wrong): string
  /** The answer of `navigator.credentials.get()`. */
  signed(options: Options, wrong?: Wrong): string
  readonly id: string
  /** Of the next signature; 0: it does not count. */
  counter: number
}
type Options = {
  readonly challenge: string
  readonly user?: { readonly id: string }
}

const [PRESENT, VERIFIED, ATTESTED] = [1, 4, 64]
const sha256 = (data: Buffer | string): Buffer => createHash('sha256').update(data).digest()
const base64url = (bytes: Buffer): string => bytes.toString('base64url')

/** `origin`: of the pages that ask it. */
export function createTestPasskey(origin: string): TestPasskey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const rpId = new URL(origin).hostname
  const id = randomBytes(16)
  let handle: string | null = null

  function clientData(type: string, { challenge }: Options, wrong: Wrong): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: wrong.type ?? type,
        challenge: wrong.challenge ?? challenge,
        origin: wrong.origin ?? origin,
        crossOrigin: wrong.crossOrigin ?? false,
      }),
    )
  }
  function authenticatorData(wrong: Wrong, attested: Buffer | null): Buffer {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(passkey.counter)
    const flags = (wrong.flags ?? PRESENT | VERIFIED) | (attested === null ? 0 : ATTESTED)
    return Buffer.concat([sha256(wrong.rpId ?? rpId), Buffer.from([flags]), count, attested ?? Buffer.alloc(0)])
  }
  const answer = (wrong: Wrong, response: object): string => {
    const name = wrong.id ?? base64url(id)
    return JSON.stringify({ id: name, rawId: name, type: 'public-key', clientExtensionResults: {}, response })
  }
  const passkey: TestPasskey = {
    id: base64url(id),
    counter: 0,
    created(options, wrong = {}) {
      handle = options.user?.id ?? null
      const length = Buffer.from([0, id.length])
      const key = coseKey(publicKey, wrong.alg ?? -7)
      const data = authenticatorData(wrong, Buffer.concat([Buffer.alloc(16), length, id, key]))
      const attestation = Buffer.concat([
        ...[Buffer.from([0xa3]), cborText('fmt'), cborText(wrong.format ?? 'none'), cborText('attStmt')],
        ...[Buffer.from([0xa0]), cborText('authData'), cborBytes(data)],
      ])
      return answer(wrong, {
        clientDataJSON: base64url(clientData('webauthn.create', options, wrong)),
        attestationObject: base64url(attestation),
        transports: ['internal'],
      })
    },
    signed(options, wrong = {}) {
      const data = authenticatorData(wrong, null)
      const client = clientData('webauthn.get', options, wrong)
      const signature = signatureOf(privateKey, Buffer.concat([data, sha256(client)]))
      const sent = wrong.tampered ? Buffer.concat([data.subarray(0, -1), Buffer.from([7])]) : data
      const userHandle = wrong.userHandle === undefined ? handle : wrong.userHandle
      return answer(wrong, {
        clientDataJSON: base64url(client),
        authenticatorData: base64url(sent),
        signature: base64url(signature),
        ...(userHandle === null ? {} : { userHandle }),
      })
    },
  }
  return passkey
}

const signatureOf = (key: KeyObject, data: Buffer): Buffer => sign('sha256', data, key)

/** RFC 9053 section 7.1.1, in canonical CBOR. */
function coseKey(key: KeyObject, alg: number): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' })
  const coordinate = (name: number, text: string) =>
    Buffer.concat([Buffer.from([name]), cborBytes(Buffer.from(text, 'base64url'))])
  const head = Buffer.from([0xa5, 0x01, 0x02, 0x03])
  return Buffer.concat([head, cborNegative(alg), Buffer.from([0x20, 0x01]), coordinate(0x21, x), coordinate(0x22, y)])
}

const cborNegative = (value: number): Buffer => {
  const rest = -1 - value
  return rest < 24 ? Buffer.from([0x20 | rest]) : Buffer.from([0x39, rest >> 8, rest & 255])
}
const cborText = (text: string): Buffer => Buffer.concat([Buffer.from([0x60 | text.length]), Buffer.from(text)])
function cborBytes(bytes: Buffer): Buffer {
  const head = bytes.length < 256 ? [0x58, bytes.length] : [0x59, bytes.length >> 8, bytes.length & 255]
  return Buffer.concat([Buffer.from(head), bytes])
}
