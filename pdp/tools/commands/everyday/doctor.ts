/** `doctor`: checks everything that a setup needs, and gives advice about each check that fails. */
import { isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Command } from 'commander'
import { messageOf } from '../../../shared/base/error-message.ts'
import { accessToken, urlOf } from '../connection.ts'
import { EXIT, type Run } from '../errors.ts'
import { type Examination, type Finding, failed, get, type Options, ok, skipped, TIMEOUT_MS } from './finding.ts'
import { examineRouteFile } from './route-file-findings.ts'

/** The greatest difference of clocks that does not affect tokens. */
const SKEW_MS_MAX = 5_000
const DAY_MS = 86_400_000
const DAYS_LEFT_MIN = 14

export function addDoctorCommand(program: Command, io: NodeJS.Process, run: Run): void {
  program
    .command('doctor')
    .description('Test each thing that a setup needs, and say how to fix what fails.')
    .option('--url <url>', 'URL of the PDP')
    .option('--client-id <id>', 'a client to get a token for (admin)')
    .option('--client-secret-file <file>', 'file with its secret')
    .option('--route-file <file>', 'a route file of the sidecar')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExit status: 0 all is well, 2 something is wrong.')
    .action((options: Options) => run(() => examine(options, io)))
}

async function examine(options: Options, io: NodeJS.Process): Promise<number> {
  const asked = { url: urlOf(options, io.env), options, io }
  const findings = [...(await examinePdp(asked)), ...(await examineRouteFile(asked))]
  io.stdout.write(options.json === true ? `${JSON.stringify(findings, null, 2)}\n` : findings.map(line).join(''))
  return findings.some(({ state }) => state === 'failed') ? EXIT.failed : EXIT.ok
}

const MARKS: { readonly [state in Finding['state']]: string } = { ok: 'ok     ', failed: 'FAILED ', skipped: 'skipped' }
const line = ({ check, state, said, advice }: Finding): string =>
  `${MARKS[state]} ${check}: ${said}\n${advice === undefined ? '' : `        → ${advice}\n`}`

async function examinePdp({ url, options, io }: Examination): Promise<readonly Finding[]> {
  const certificate = await examineCertificate(url)
  const reached = await get(`${url}/.well-known/openid-configuration`)
  if (!('status' in reached))
    return [failed('PDP', `${url} cannot be reached (${reached.reason})`, adviceFor(reached.reason)), ...certificate]
  const found = [
    ok('PDP', `${url} answers`),
    ...certificate,
    examineClock(reached.date),
    await examineIssuer(url, reached),
  ]
  try {
    const token = await accessToken(options, { env: io.env, scope: 'directory:read' })
    return [...found, ok('credentials', 'the client gets a token'), await examineDatabase(url, token)]
  } catch (err) {
    const said = messageOf(err)
    // The credentials may be good: without its database, the PDP gives no token to any client.
    if (/temporarily_unavailable|server_error|status 503/.test(said))
      return [...found, skipped('credentials', 'the PDP cannot check them without its database'), DATABASE_DOWN]
    const advice = 'give a client that has directory:read by --client-id and --client-secret-file'
    return [...found, failed('credentials', said, advice), skipped('database', 'no token to ask with')]
  }
}

const DATABASE_DOWN = failed(
  'database',
  'the PDP cannot reach it',
  'is PostgreSQL up, and is DATABASE_URL of the PDP right? Its log says more, and so does /readyz of its metrics port',
)

function adviceFor(reason: string): string {
  if (/CERT|SELF_SIGNED|ISSUER|SIGNATURE/i.test(reason))
    return 'its certificate is not accepted here: see the next line'
  if (reason === 'ENOTFOUND' || reason === 'EAI_AGAIN')
    return 'this name has no address: give the right one by --url or PORTCULLIS_URL'
  return 'start it with portcullis-pdp serve, or give its address by --url or PORTCULLIS_URL'
}

function examineClock(date: string | null): Finding {
  const difference = date === null ? Number.NaN : Date.now() - Date.parse(date)
  if (Number.isNaN(difference)) return skipped('clock', 'the PDP does not tell the time')
  // A second more is allowed, because the Date field has whole seconds.
  const off = Math.abs(difference) > SKEW_MS_MAX + 1_000
  const said = `differs by ${Math.round(Math.abs(difference) / 1_000)} s from the PDP’s`
  return off
    ? failed('clock', said, 'set the clock of this machine by NTP, or of the PDP’s: tokens are refused')
    : ok('clock', said)
}

async function examineIssuer(
  url: string,
  { status, body }: { readonly status: number; readonly body: unknown },
): Promise<Finding> {
  const { issuer, jwks_uri }: { issuer?: unknown; jwks_uri?: unknown } =
    typeof body === 'object' && body !== null ? { ...body } : {}
  if (status !== 200 || typeof issuer !== 'string' || typeof jwks_uri !== 'string')
    return failed('issuer', `its metadata answers ${status}`, 'is this address that of a PDP?')
  const keys = await get(jwks_uri)
  if (!('status' in keys) || keys.status !== 200)
    return failed(
      'issuer',
      `${jwks_uri} cannot be read from here`,
      'PORTCULLIS_ISSUER must be the origin by which everybody reaches the PDP',
    )
  const same = URL.parse(issuer)?.origin === url
  return ok('issuer', `${issuer}${same ? '' : `, which is not ${url}: tokens name the former`}`)
}

async function examineDatabase(url: string, token: string): Promise<Finding> {
  const answer = await get(`${url}/v1/organizations?page_size=1`, { authorization: `Bearer ${token}` })
  if (!('status' in answer)) return failed('database', answer.reason, 'try again')
  if (answer.status === 200) return ok('database', 'the PDP reads it')
  if (answer.status === 503) return DATABASE_DOWN
  return failed('database', `the PDP answers ${answer.status}`, 'the client needs the scope directory:read')
}

/** Checks a URL's certificate; no finding without TLS. */
async function examineCertificate(url: string): Promise<readonly Finding[]> {
  const { protocol, hostname, port } = new URL(url)
  if (protocol !== 'https:') return []
  const found = await new Promise<{ readonly ends: string; readonly fault: string | null } | Error>((resolve) => {
    // Nothing is sent on this connection, so it may accept any certificate in order to examine it.
    const socket = connectTls(
      {
        host: hostname,
        port: Number(port || 443),
        // RFC 6066 section 3: a host name is sent, never an address.
        ...(isIP(hostname) === 0 && { servername: hostname }),
        timeout: TIMEOUT_MS,
        rejectUnauthorized: false,
      },
      () => {
        const { valid_to: ends } = socket.getPeerCertificate()
        resolve({ ends, fault: socket.authorized ? null : String(socket.authorizationError) })
        socket.end()
      },
    )
    socket.on('error', resolve)
    socket.on('timeout', () => socket.destroy(new Error('no answer')))
  })
  return [certificateFinding(found)]
}

function certificateFinding(found: { readonly ends: string; readonly fault: string | null } | Error): Finding {
  const check = 'certificate'
  if (found instanceof Error) return failed(check, found.message, 'is this the https port of the PDP?')
  const { ends, fault } = found
  const days = Math.floor((Date.parse(ends) - Date.now()) / DAY_MS)
  if (days < 0) return failed(check, `it expired on ${new Date(ends).toISOString().slice(0, 10)}`, 'renew it')
  if (fault === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return failed(
      check,
      'it is for another name',
      'give the name in the certificate by --url, or make one for this name',
    )
  if (fault !== null) return failed(check, `it is not accepted here (${fault})`, 'trust its CA by NODE_EXTRA_CA_CERTS')
  if (days < DAYS_LEFT_MIN) return failed(check, `it expires in ${days} days`, 'renew it')
  return ok(check, `good for ${days} days`)
}
