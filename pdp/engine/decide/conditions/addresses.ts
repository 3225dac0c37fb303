/** IP addresses in conditions: `ipaddress("…")` makes one, and `address.in_cidr("…/…")` is true if the network contains it. */
import { type CelFunc, CelScalar, celFunc, celMethod, objectType } from '@bufbuild/cel'
import { create, createFileRegistry, type DescField } from '@bufbuild/protobuf'
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'
import ipaddr from 'ipaddr.js'

/** An address is a protobuf message with its bytes, because the library has no other object types. */
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

/** The address in the text. Null for another text, and for an address with a zone, which means something on one machine only. */
export function addressValue(text: string): ReflectMessage | null {
  const bytes = addressBytes(text)
  if (bytes === null) return null
  const message = reflect(ADDRESS)
  message.set(BYTES, Uint8Array.from(bytes))
  return message
}

/**
 * The URL parser first brings IPv6 into one form, because ipaddr.js also accepts plain numbers, octal and short forms, and reads
 * `::192.0.2.1` as a mapped IPv4 address.
 */
function addressBytes(text: string): readonly number[] | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text).toByteArray()
  const url = `http://[${text}]`
  if (!/^[\da-f:.]*:[\da-f:.]*$/i.test(text) || !URL.canParse(url)) return null
  const address = ipaddr.IPv6.parse(new URL(url).hostname.slice(1, -1))
  return (address.isIPv4MappedAddress() ? address.toIPv4Address() : address).toByteArray()
}

type Network = { readonly bytes: readonly number[]; readonly bits: number }

/** The first bytes of an IPv6 address that contains an IPv4 address. */
const MAPPED = [...Array<number>(10).fill(0), 0xff, 0xff]

function parseNetwork(text: string): Network | null {
  const [, address = '', digits = ''] = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
  const bytes = addressBytes(address)
  const bits = Number(digits)
  if (bytes === null || bits > (address.includes(':') ? 128 : 32)) return null
  // A network of mapped IPv4 addresses (RFC 4291 section 2.5.5.2) becomes an IPv4 network; a wider one stays a network of IPv6.
  if (!address.includes(':') || bytes.length === 16) return { bytes, bits }
  return bits >= 96 ? { bytes, bits: bits - 96 } : { bytes: [...MAPPED, ...bytes], bits }
}

const isWithin = (address: Uint8Array, { bytes, bits }: Network): boolean =>
  address.length === bytes.length && ipaddr.fromByteArray([...address]).match(ipaddr.fromByteArray([...bytes]), bits)

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('the description of an address is incomplete')
  return value
}
