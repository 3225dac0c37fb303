/** Hashes that passlib, argon2-cffi, bcrypt and Django made of one password, of the least cost; and what is refused. */
import { describe, expect, test } from 'vitest'
import {
  costOf,
  hashOfCost,
  isWholeSecret,
  readImportedHash,
} from '../../../../../pdp/identity/people/passwords/imported-hash.ts'
import { verifySecret } from '../../../../../pdp/identity/people/passwords/password-hash.ts'

const SECRET = 'pässword 1'
const MADE_ELSEWHERE = {
  'bcrypt 2b': '$2b$04$fmFt4CKbJ1gUfLZWhqQwr.RFEJeRjmCMaQtbS/L7MrxVS8PaDfOvS',
  'bcrypt 2y': '$2y$04$4SqttjcVBURE.gZ/.NWZFuB2n5hnx8V2CRlcqYnQWCGNR.Sloe/Oi',
  'bcrypt 2a': '$2a$04$FGcv7TOXCOxPBZQ8Q3aFzeE9KCNJqk7EVwHqk0zWmstGiSXNfQwTi',
  'PBKDF2 of passlib': '$pbkdf2-sha256$1000$UAqB8B4jpJQSopTyvte6lw$OH/7xU/shr5WEXu/1cyVjc/fYYJTbhMY2FI0SRWRi.c',
  'PBKDF2 with SHA-512':
    '$pbkdf2-sha512$1000$ByAEYIzxnjNmDIHQuhdCyA$nzJLUKYKu0rGEjz2E3AYbfzTXahQjgjq2Dv/sHOVLxCQkXlY1iCQI5I0mX2ChGXwVj/k9rY1AxgwbAtQzUq2FQ',
  'PBKDF2 with SHA-1': '$pbkdf2$1000$2Lv3vrdWai0lhFCKca51zg$/0AnCNb9y35rznUEWqctl7Pv1Ig',
  'PBKDF2 as a PHC string':
    '$pbkdf2-sha256$i=1000,l=32$UAqB8B4jpJQSopTyvte6lw$OH/7xU/shr5WEXu/1cyVjc/fYYJTbhMY2FI0SRWRi+c',
  'PBKDF2 of Django': 'pbkdf2_sha256$1000$10JE4YiuyqQW3ayrrtzL4h$zi9brvv3W8IfDgEaHS4v18ZgzdBw8Do8+xjrqRePoUs=',
  scrypt: '$scrypt$ln=4,r=8,p=1$UMpZK0VIyVkLwbj3Puf8vw$Kd2hzBfJQj/WPpSg6gw5AE6SSkYY0+R3sqECULu3Wxw',
  argon2d: '$argon2d$v=19$m=64,t=1,p=1$K+2Bfa1Fl2LbA4XDb+HrbA$5zft/bRyG6cBUFwAlLo5v35msTkXaOJ5CCF/i/NGxjc',
  argon2i: '$argon2i$v=19$m=64,t=1,p=1$9NJHsYPlKVGNfqeI2Py8Xw$rwlvNLv5cZLIFDPorSfB3O0W0hci2zEPnRcM4R0x7Ko',
  argon2id: '$argon2id$v=19$m=64,t=1,p=1$bCe8AXvyaqlYWhEuK8hwDw$WEyvUcs5fxsWW4a7Fdhe5rKwukRz0BUUdFspGhB617Q',
  'Argon2 of Django':
    'argon2$argon2id$v=19$m=64,t=1,p=1$eFVscE9lNGY0Zkg5bXNXVXNYa3FwWg$GaeUVWbFvr7/iFxAZ78WeXLdUusEQDnVNfk7Ep1y7kc',
  'bcrypt of Django': 'bcrypt$$2b$04$WJq6quGZyoWwUg8W9Flr5.MH4ggKKIMgnFiLdyJjJKfXa7TW8D0IC',
} as const

const read = (text: string): string => {
  const found = readImportedHash(text)
  return 'hash' in found ? found.hash : `refused: it ${found.issue}`
}
const SALT = 'A'.repeat(22)
const HASH = 'A'.repeat(43)

describe.each(Object.entries(MADE_ELSEWHERE))('a hash of %s', (_name, text) => {
  test('is read, verifies its password, and no other', async () => {
    const hash = read(text)
    expect(hash).toMatch(/^\$/)
    expect(await verifySecret(SECRET, hash)).toBe(true)
    for (const wrong of ['pässword', 'password 1', `${SECRET} `, 'x'.repeat(72)])
      expect(await verifySecret(wrong, hash), wrong).toBe(false)
  })

  test('has a cost of which a decoy can be made, which takes as much and matches nothing', async () => {
    const hash = read(text)
    const decoy = hashOfCost(costOf(hash))
    expect(decoy).not.toBe(hash)
    expect(costOf(decoy)).toBe(costOf(hash))
    expect(read(decoy)).toBe(decoy)
    expect(await verifySecret(SECRET, decoy)).toBe(false)
  })
})

describe('an import refuses', () => {
  test.each([
    ['', 'hash of bcrypt'],
    ['password', 'hash of bcrypt'],
    ['5f4dcc3b5aa765d61d8327deb882cf99', 'hash of bcrypt'],
    ['$1$salt$qJH7.N4xYta3aEG/dfqo/0', 'hash of bcrypt'],
    ['$6$saltsalt$abc', 'hash of bcrypt'],
    [`$2x$04$${'a'.repeat(53)}`, 'hash of bcrypt'],
    [`$2b$4$${'a'.repeat(53)}`, 'hash of bcrypt'],
    [`$2b$04$${'a'.repeat(52)}`, 'hash of bcrypt'],
    [`$2b$04$${'a'.repeat(53)}\n`, 'hash of bcrypt'],
    ['bcrypt_sha256$$2b$04$2/d5nFufMCu3cjKjc.JajOsIurfwsAgPTherr7p.7RpnbHXX2Xuri', 'hash of bcrypt'],
    [`$2b$03$${'a'.repeat(53)}`, 'its cost is 3'],
    [`$2b$15$${'a'.repeat(53)}`, 'its cost is 15'],
    [`$2b$31$${'a'.repeat(53)}`, 'its cost is 31'],
    [`$argon2id$v=16$m=64,t=1,p=1$${SALT}$${HASH}`, 'version 19'],
    [`$argon2id$m=64,t=1,p=1$${SALT}$${HASH}`, 'hash of bcrypt'],
    [`$argon2id$v=19$m=131073,t=1,p=1$${SALT}$${HASH}`, 'its memory'],
    [`$argon2id$v=19$m=7,t=1,p=1$${SALT}$${HASH}`, 'its memory'],
    [`$argon2id$v=19$m=64,t=11,p=1$${SALT}$${HASH}`, 'its number of passes'],
    [`$argon2id$v=19$m=64,t=0,p=1$${SALT}$${HASH}`, 'its number of passes'],
    [`$argon2id$v=19$m=131072,t=9,p=1$${SALT}$${HASH}`, 'its memory times its passes'],
    [`$argon2id$v=19$m=64,t=1,p=17$${SALT}$${HASH}`, 'its parallelism'],
    [`$argon2id$v=19$m=64,t=1,p=0$${SALT}$${HASH}`, 'its parallelism'],
    [`$argon2id$v=19$m=64,t=1,p=1$AAAAAA$${HASH}`, 'the length of its salt'],
    [`$argon2id$v=19$m=64,t=1,p=1$${SALT}$AAAA`, 'the length of its hash'],
    [`$pbkdf2-sha256$i=2000001$${SALT}$${HASH}`, 'its number of rounds'],
    [`$pbkdf2-sha256$i=0$${SALT}$${HASH}`, 'its number of rounds'],
    [`$pbkdf2-sha256$i=1000$${SALT}$${'A'.repeat(88)}`, 'the length of its hash'],
    [`$pbkdf2-md5$i=1000$${SALT}$${HASH}`, 'hash of bcrypt'],
    [`$pbkdf2-sha1$i=500001$${SALT}$${'A'.repeat(86)}`, 'its rounds times the blocks of its hash'],
    [`$pbkdf2-sha1$i=1000001$${SALT}$${'A'.repeat(28)}`, 'its rounds times the blocks of its hash'],
    [`$pbkdf2-sha256$i=1000001$${SALT}$${'A'.repeat(44)}`, 'its rounds times the blocks of its hash'],
    [`$pbkdf2$500001$${SALT}$${'A'.repeat(86)}`, 'its rounds times the blocks of its hash'],
    [`$scrypt$ln=21,r=1,p=1$${SALT}$${HASH}`, 'its ln'],
    [`$scrypt$ln=20,r=2,p=1$${SALT}$${HASH}`, 'its ln'],
    [`$scrypt$ln=16,r=1,p=1$${SALT}$${HASH}`, 'its ln'],
    [`$scrypt$ln=0,r=8,p=1$${SALT}$${HASH}`, 'its ln'],
    [`$scrypt$ln=4,r=0,p=1$${SALT}$${HASH}`, 'its r'],
    [`$scrypt$ln=4,r=8,p=0$${SALT}$${HASH}`, 'its p'],
    [`$scrypt$ln=4,r=0017,p=1$${SALT}$${HASH}`, 'its r'],
    [`$scrypt$ln=18,r=8,p=1$${SALT}$${HASH}`, 'its memory'],
    [`$scrypt$ln=17,r=8,p=5$${SALT}$${HASH}`, 'its work'],
    [`$scrypt$ln=14,r=17,p=1$${SALT}$${HASH}`, 'its r'],
    [`$scrypt$ln=14,r=8,p=17$${SALT}$${HASH}`, 'its p'],
  ])('%j', (text, why) => {
    expect(read(text)).toContain('refused')
    expect(read(text)).toContain(why)
  })
})

test('what is beyond the bounds is not computed, even if it is stored', async () => {
  for (const stored of [
    `$2b$31$${'a'.repeat(53)}`,
    `$argon2id$v=19$m=99999999,t=1,p=1$${SALT}$${HASH}`,
    `$pbkdf2-sha256$i=99999999$${SALT}$${HASH}`,
    `$pbkdf2-sha1$i=2000000$${SALT}$${'A'.repeat(86)}`,
    `$scrypt$ln=18,r=16,p=16$${SALT}$${HASH}`,
    `$scrypt$ln=16,r=1,p=1$${SALT}$${HASH}`,
  ])
    expect(await verifySecret(SECRET, stored)).toBe(false)
})

test('the largest that is taken is taken', () => {
  for (const text of [
    `$2b$14$${'a'.repeat(53)}`,
    `$argon2id$v=19$m=131072,t=8,p=16$${SALT}$${HASH}`,
    `$pbkdf2-sha512$i=2000000$${SALT}$${'A'.repeat(86)}`,
    `$pbkdf2-sha1$i=500000$${SALT}$${'A'.repeat(86)}`,
    `$scrypt$ln=17,r=8,p=4$${SALT}$${HASH}`,
    `$scrypt$ln=19,r=2,p=4$${SALT}$${HASH}`,
    `$scrypt$ln=15,r=1,p=16$${SALT}$${HASH}`,
  ])
    expect(read(text)).toBe(text)
})

// Of these, one side knew more than the other once: taken at the import, refused at each sign-in.
test.each([
  ['the most ln', 'ln=19,r=2,p=1', 'ln=19,r=2,p=1', 'Mhhg7BE6Z0r4tQI0bX1b7bdMcJ5/X3zQMBG0yIPMmY0'],
  ['the most ln with r=1', 'ln=15,r=1,p=1', 'ln=15,r=1,p=1', '73mYoshOEyVyM2WkTcAwsz6mrfbljgz4v4807qRdbZM'],
  ['zeros before its numbers', 'ln=04,r=008,p=001', 'ln=4,r=8,p=1', '5Rkh3SmxOGKs2S6jzQxWRcXy2dEMLmlRcqAHFs1JVDg'],
])('scrypt that is taken verifies: with %s', async (_name, given, canonical, hash) => {
  const stored = read(`$scrypt$${given}$${SALT}$${hash}`)
  expect(stored).toBe(`$scrypt$${canonical}$${SALT}$${hash}`)
  expect(await verifySecret(SECRET, stored)).toBe(true)
})

test('numbers are stored without zeros before them, and bcrypt keeps its two digits', () => {
  const pbkdf2 = `$pbkdf2-sha256$i=1000$${SALT}$${HASH}`
  expect(read(`$pbkdf2-sha256$i=0001000$${SALT}$${HASH}`)).toBe(pbkdf2)
  expect(read(`$pbkdf2-sha256$0001000$${SALT}$${HASH}`)).toBe(pbkdf2)
  expect(read(`$argon2id$v=19$m=00064,t=01,p=01$${SALT}$${HASH}`)).toBe(`$argon2id$v=19$m=64,t=1,p=1$${SALT}$${HASH}`)
  expect(read(MADE_ELSEWHERE['bcrypt 2b'])).toBe(MADE_ELSEWHERE['bcrypt 2b'])
})

test('of bcrypt, a password that it does not know whole is not hashed again', () => {
  const bcrypt = MADE_ELSEWHERE['bcrypt 2b']
  expect(isWholeSecret('x'.repeat(72), bcrypt)).toBe(true)
  expect(isWholeSecret('x'.repeat(73), bcrypt)).toBe(false)
  expect(isWholeSecret('ä'.repeat(37), bcrypt)).toBe(false)
  expect(isWholeSecret('x'.repeat(73), MADE_ELSEWHERE.argon2id)).toBe(true)
})

test('bcrypt sees no password that holds a zero byte', async () => {
  expect(await verifySecret(`${SECRET}\0x`, MADE_ELSEWHERE['bcrypt 2b'])).toBe(false)
})
