/**
 * For the workers of vitest. Tests hash some 800 secrets that a person chose, at 0.2 s of CPU time each: more than all the rest
 * takes. Here a hash of our own cost is derived at the least cost. Hashes of other costs, and programs of their own, are real.
 */
import crypto, { type ScryptOptions } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { afterAll, beforeAll } from 'vitest'

type Scrypt = typeof crypto.scrypt
type Callback = (error: Error | null, key: Buffer) => void

const ORIGINAL = Symbol.for('portcullis.scrypt')
const held = crypto as typeof crypto & { [ORIGINAL]?: Scrypt }
held[ORIGINAL] ??= crypto.scrypt
const real = held[ORIGINAL]

const isOurs = ({ N, r, p }: ScryptOptions): boolean => N === 2 ** 15 && r === 8 && p === 3

function quick(password: string, salt: Buffer, bytes: number, options: ScryptOptions, callback: Callback): void {
  real(password, salt, bytes, isOurs(options) ? { ...options, N: 2, p: 1 } : options, callback)
}

function put(scrypt: Scrypt): void {
  crypto.scrypt = scrypt
  syncBuiltinESMExports()
}

put(quick as Scrypt)

/** For a file whose tests need the time that a hash takes, or read hashes that were made elsewhere. */
export function realScrypt(): void {
  beforeAll(() => put(real))
  afterAll(() => put(quick as Scrypt))
}
