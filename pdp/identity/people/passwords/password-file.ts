/** Searches a sorted file of SHA-1 digests of known passwords, one per line, in the form of "Pwned Passwords". It is never loaded whole. */
import { open } from 'node:fs/promises'
import type { KnownPasswords } from './password-rules.ts'

const DIGEST_CHARACTERS = 40
/** The longest line of the form `digest:count`, with its end. */
const LINE_BYTES_MAX = 64
const LINE = /^([0-9A-Fa-f]{40})(?::\d{1,20})?\r?$/
/** The size, in bytes, from which a range is read whole. */
const WINDOW_BYTES = 4_096

/** Throws Error when the file cannot be read, or its first line is not of this form. */
export async function openPasswordFile(path: string): Promise<KnownPasswords> {
  await withFile(path, async (read) => {
    const first = (await read(0, LINE_BYTES_MAX)).split('\n', 1)[0] ?? ''
    if (!LINE.test(first)) throw new Error(`${path} does not begin with a SHA-1 digest in hexadecimal digits`)
  })
  return { has: (sha1) => withFile(path, (read, bytes) => search(sha1.toUpperCase(), read, bytes)) }
}

type Read = (from: number, bytesMax: number) => Promise<string>

/** Opens the file for each search: the operator may replace it between two searches. */
async function withFile<T>(path: string, work: (read: Read, bytes: number) => Promise<T>): Promise<T> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const read: Read = async (from, bytesMax) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(bytesMax), 0, bytesMax, from)
      return buffer.toString('latin1', 0, bytesRead)
    }
    return await work(read, size)
  } finally {
    await file.close()
  }
}

async function search(sha1: string, read: Read, bytes: number): Promise<boolean> {
  // The line begins within [low, high].
  let low = 0
  let high = bytes
  while (high - low > WINDOW_BYTES) {
    const middle = Math.floor((low + high) / 2)
    const { digest, at } = await lineAfter(read, middle)
    if (digest === sha1) return true
    if (digest < sha1) low = at
    else high = middle
  }
  const window = await read(low, high - low + 2 * LINE_BYTES_MAX)
  return window.split('\n').some((line) => LINE.exec(line)?.[1]?.toUpperCase() === sha1)
}

/** The first whole line that begins after `from`. */
async function lineAfter(read: Read, from: number): Promise<{ digest: string; at: number }> {
  const text = await read(from, 2 * LINE_BYTES_MAX + DIGEST_CHARACTERS)
  const begin = text.indexOf('\n') + 1
  const digest = text.slice(begin, begin + DIGEST_CHARACTERS).toUpperCase()
  if (begin === 0 || !LINE.test(digest)) throw new Error('the file of known passwords has a line of another form')
  return { digest, at: from + begin }
}
