/** Random and mutated request targets, from a seed: what path tricks are made of. */

export type Random = () => number

/** mulberry32: small, fast, and the same everywhere. */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export const pick = <T>(random: Random, items: readonly T[]): T => {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new TypeError('nothing to pick from')
  return item
}

const STARTS = [
  '/public/x',
  '/public/assets/a/b.css',
  '/files/a',
  '/files/secret',
  '/files/a.csv',
  '/orgs/acme/invoices/1.csv',
  '/files/a/secret',
  '/invoices/1',
  '/invoices/1/approve',
  '/invoices/export',
  '/invoices/export/approve',
  '/orgs/acme/invoices/1',
  '/admin',
  '/admin/users',
  '/Admin/Users',
  '/admin/',
  '/mnt',
  '/mnt/',
  '/files/read@me',
  '/invoices/1/',
  '/straße/K',
  '/',
]
const PIECES = [
  ...[
    '/',
    '//',
    '/./',
    '/../',
    '..',
    '.',
    '\\',
    ';',
    ';a=b',
    ':',
    '@',
    '*',
    '~',
    '+',
    ',',
    '=',
    '!',
    "'",
    '(',
    '$',
    '&',
  ],
  ...[
    '%2f',
    '%2F',
    '%2e',
    '%2e%2e',
    '%5c',
    '%3b',
    '%3B',
    '%00',
    '%20',
    '%23',
    '%3f',
    '%3F',
    '%25',
    '%252f',
    '%40',
    '%2e%2e%3b',
    '%3a',
    '%25%32%66',
  ],
  ...['%c0%af', '%e0%80%af', '%u002f', '%ef%bc%8f', '%c4%b1', '%e2%84%aa', '%c5%bf', '%C3%A9', '%c3%9f', '%61', '%41'],
  ...[
    '?',
    '?a=b',
    '#',
    '%0d%0a',
    '%09',
    'secret',
    'admin',
    'ADMIN',
    'public',
    'approve',
    'export',
    'users',
    '...',
    '..;',
  ],
  ...[
    '[',
    ']',
    '|',
    '^',
    '%5b',
    '%7C',
    'http://app.test',
    '//app.test',
    '.json',
    '.csv',
    '.html',
    '%',
    '%2',
    '%zz',
    'é',
    '\u0000',
    ' ',
  ],
]

const MUTATIONS: readonly ((text: string, random: Random) => string)[] = [
  (text, random) => insert(text, pick(random, PIECES), random),
  (text, random) => insert(text, pick(random, PIECES), random),
  (text, random) => text + pick(random, PIECES),
  (text, random) => insert(text, Math.floor(random() * 1e6).toString(36), random),
  (text, random) =>
    insert(
      text,
      `%${Math.floor(random() * 256)
        .toString(16)
        .padStart(2, '0')}`,
      random,
    ),
  (text, random) => text.replace(text.charAt(Math.floor(random() * text.length)), ''),
  (text, random) =>
    changeAt(text, random, (one) => (one === one.toLowerCase() ? one.toUpperCase() : one.toLowerCase())),
  (text, random) => changeAt(text, random, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`),
  (text) => `${text}/`,
  (text) => text.toUpperCase(),
  (text, random) => `${pick(random, STARTS)}${text}`,
  (text, random) => `${text}/..${pick(random, STARTS)}`,
  (text, random) => text.replaceAll('/', pick(random, ['//', '/./', '%2f', '/'])),
]

function insert(text: string, piece: string, random: Random): string {
  const at = Math.floor(random() * (text.length + 1))
  return text.slice(0, at) + piece + text.slice(at)
}

function changeAt(text: string, random: Random, change: (one: string) => string): string {
  const at = Math.floor(random() * text.length)
  return text.slice(0, at) + change(text.charAt(at)) + text.slice(at + 1)
}

export function randomTarget(random: Random): string {
  let text = pick(random, STARTS)
  for (let left = Math.floor(random() * 4); left > 0; left -= 1) text = pick(random, MUTATIONS)(text, random)
  return text
}
