/** IP addresses in conditions: `ipaddress("…")` makes one, `address.in_cidr("…/…")` asks whether a network holds it. */
import { type CelFunc, CelScalar, celFunc, celMethod, objectType } from '@bufbuild/cel'
import { create, createFileRegistry, type DescField } from '@bufbuild/protobuf'
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'

/** The library knows no object types but messages, so that an address is a message that holds its bytes. */
const FILE = create(FileDescriptorProtoSchema, {
  name: 'portcullis/condition.proto',
  package: 'portcullis.condition',
  syntax: 'proto3',
  messageType: [
    {
      name: 'IpAddress',
      field: [
        {
          name: 'bytes',
          number: 1,
          type: FieldDescriptorProto_Type.BYTES,
          label: FieldDescriptorProto_Label.OPTIONAL,
        },
      ],
    },
  ],
})
export const ADDRESS_REGISTRY = createFileRegistry(FILE, () => undefined)
const ADDRESS = required(ADDRESS_REGISTRY.getMessage('portcullis.condition.IpAddress'))
const BYTES: DescField = required(ADDRESS.field.bytes)
const ADDRESS_TYPE = objectType(ADDRESS)

export const ADDRESS_FUNCTIONS: CelFunc[] = [
  celFunc('ipaddress', [CelScalar.STRING], ADDRESS_TYPE, (text) => {
    const address = addressValue(text)
    if (address === null) throw new Error('this is not an IP address')
    return address
  }),
  celMethod('in_cidr', ADDRESS_TYPE, [CelScalar.STRING], CelScalar.BOOL, function (network) {
    const address: unknown = this.get(BYTES)
    const prefix = parseNetwork(network)
    if (prefix === null || !(address instanceof Uint8Array)) throw new Error('in_cidr needs a network: 10.0.0.0/8')
    return isWithin(address, prefix)
  }),
]

/** Null when the text is not an address. */
export function addressValue(text: string): ReflectMessage | null {
  const bytes = parseAddress(text)
  if (bytes === null) return null
  const message = reflect(ADDRESS)
  message.set(BYTES, Uint8Array.from(unmapped(bytes)))
  return message
}

type Network = { readonly bytes: readonly number[]; readonly bits: number }

function parseNetwork(text: string): Network | null {
  const [, address = '', digits = ''] = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
  const bytes = parseAddress(address)
  const bits = Number(digits)
  if (bytes === null || bits > bytes.length * 8) return null
  // An IPv4 network written in IPv6 (RFC 4291 section 2.5.5.2) holds the IPv4 addresses.
  const plain = unmapped(bytes)
  return plain.length < bytes.length && bits >= 96 ? { bytes: plain, bits: bits - 96 } : { bytes, bits }
}

function isWithin(address: Uint8Array, { bytes, bits }: Network): boolean {
  if (address.length !== bytes.length) return false
  return bytes.every((byte, i) => {
    const left = bits - i * 8
    const mask = left >= 8 ? 0xff : left <= 0 ? 0 : (0xff << (8 - left)) & 0xff
    return ((byte ^ (address[i] ?? 0)) & mask) === 0
  })
}

/** Without a zone: an address of a link says nothing elsewhere. */
function parseAddress(text: string): readonly number[] | null {
  return text.includes(':') ? parseSixteen(text) : parseFour(text)
}

function parseFour(text: string): readonly number[] | null {
  const parts = text.split('.')
  const valid = parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)
  return valid ? parts.map(Number) : null
}

function parseSixteen(text: string): readonly number[] | null {
  const [head = '', tail, ...more] = text.split('::')
  const before = bytesOf(head, tail === undefined)
  const after = tail === undefined ? [] : bytesOf(tail, true)
  if (more.length > 0 || before === null || after === null) return null
  const missing = 16 - before.length - after.length
  if (tail === undefined ? missing !== 0 : missing < 2) return null
  return [...before, ...Array<number>(missing).fill(0), ...after]
}

function bytesOf(text: string, endsAddress: boolean): readonly number[] | null {
  if (text === '') return []
  const bytes: number[] = []
  const groups = text.split(':')
  for (const [i, group] of groups.entries()) {
    const four = endsAddress && i === groups.length - 1 && group.includes('.') ? parseFour(group) : null
    if (four !== null) bytes.push(...four)
    else if (/^[0-9A-Fa-f]{1,4}$/.test(group))
      bytes.push(...[8, 0].map((shift) => (Number(`0x${group}`) >> shift) & 0xff))
    else return null
  }
  return bytes.length > 16 ? null : bytes
}

/** `::ffff:192.0.2.1` is 192.0.2.1. */
function unmapped(bytes: readonly number[]): readonly number[] {
  const mapped = bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0)
  return mapped && bytes[10] === 0xff && bytes[11] === 0xff ? bytes.slice(12) : bytes
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('the description of an address is incomplete')
  return value
}
