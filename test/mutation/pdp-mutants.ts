/** Faults in tokens, proofs and decisions. */
import { type Group, inFile } from './mutant.ts'

const verify = inFile('pdp/shared/token/verify.ts')
const claims = inFile('pdp/shared/token/claims.ts')
const jws = inFile('pdp/shared/token/jws.ts')
const signature = inFile('pdp/shared/token/signature.ts')
const dpop = inFile('pdp/shared/token/dpop.ts')
const check = inFile('pdp/engine/decide/check.ts')
const near = inFile('pdp/engine/decide/near.ts')
const search = inFile('pdp/engine/decide/search/search.ts')
const expansion = inFile('pdp/engine/decide/search/expansion.ts')
const settle = inFile('pdp/engine/decide/search/settle.ts')
const terms = inFile('pdp/engine/decide/check-terms.ts')
const own = inFile('pdp/engine/decide/own-tuples.ts')
const budget = inFile('pdp/engine/decide/budget.ts')

export const PDP_GROUPS: readonly Group[] = [
  {
    name: 'token verification',
    tests: [
      'test/pdp/shared/token/verify.test.ts',
      'test/pdp/shared/token/jose-vectors.test.ts',
      'test/pdp/shared/token/algorithms.test.ts',
    ],
    mutants: [
      verify('a token of another kind', 'requireAccessToken(jws, external)\n', '\n'),
      verify(
        'a token for another resource',
        'expected !== null && !names.some((name) => audiences.includes(name))',
        'expected !== null && audiences.length === 0',
      ),
      verify(
        'an expired token',
        'if (now >= claims.expiresAtMs + expiryLeewayMs) throw',
        'if (now >= claims.expiresAtMs + 60_000) throw',
      ),
      verify(
        'a remembered token after its end',
        'if (clock() < entry.claims.expiresAtMs + expiryLeewayMs && entry',
        'if (entry',
      ),
      verify('a remembered token whose key is gone', ' && entry.isGood()) return', ') return'),
      verify(
        'a token from the future',
        'if (notBeforeMs > now + futureLeewayMs)',
        'if (notBeforeMs > now + 1_000 * futureLeewayMs)',
      ),
      verify(
        'nbf does not count',
        "Math.max(claims.issuedAtMs, optionalInstant(claims.all, 'nbf') ?? 0)",
        'claims.issuedAtMs',
      ),
      signature('an algorithm that the issuer does not use', ' || !issuer.algorithms.includes(algorithm)', ''),
      signature(
        'a key that did not sign',
        'if (err instanceof JOSEError) return false',
        'if (err instanceof JOSEError) return true',
      ),
      claims('unknown confirmations', ' || Object.keys(unknown).length > 0', ''),
      claims(
        'an id with #',
        String.raw`/^(?!\*$)[\x21\x22\x24-\x7e]{1,256}$/`,
        String.raw`/^(?!\*$)[\x21-\x7e]{1,256}$/`,
      ),
      jws(
        'a second spelling of base64url',
        "return bytes.toString('base64url') === part ? bytes : null",
        'return bytes',
      ),
    ],
  },
  {
    name: 'DPoP',
    tests: [
      'test/pdp/shared/token/dpop.test.ts',
      'test/pdp/shared/token/nonces.test.ts',
      'test/pdp/shared/token/jose-vectors.test.ts',
    ],
    mutants: [
      dpop(
        'a proof for another method',
        'if (payload.htm !== request.method) throw',
        'if (payload.htm === undefined) throw',
      ),
      dpop('a proof for another URL', ' || named !== comparable(request.url))', ')'),
      dpop('a proof for no URL', 'if (named === null || named', 'if (named'),
      dpop(
        'a proof for another token',
        'if (payload.ath !== claims.digest) throw',
        'if (payload.ath === undefined) throw',
      ),
      dpop('a proof by another key', 'if (proof.thumbprint !== claims.jkt)', "if (claims.jkt === '')"),
      dpop('a proof that was used', 'if (!first) throw replayed()', ''),
      dpop('a proof that is remembered too shortly', 'return issuedAtMs + ageMaxMs\n', 'return now + 1_000\n'),
      dpop('an old proof', 'if (issuedAtMs + ageMaxMs <= now) throw', 'if (issuedAtMs + 10 * ageMaxMs <= now) throw'),
      dpop(
        'a proof from the future',
        'if (issuedAtMs > now + futureLeewayMs) throw',
        'if (issuedAtMs > now + 10 * futureLeewayMs) throw',
      ),
      dpop('no nonce', "nonces.classify(proof.payload.nonce) === 'bad'", "proof.payload.nonce === 'bad'"),
      jws('extensions of a JWS', 'header.crit !== undefined || ', ''),
      dpop('two proofs', 'if (proofs.length > 1) throw', 'if (proofs.length > 2) throw'),
      dpop(
        'a private key in the proof',
        'parts === null || PRIVATE_MEMBERS.some((name) => name in parts)',
        'parts === null',
      ),
      dpop(
        'another kind of JWT',
        "if (!hasType(proof.header, 'dpop+jwt')) throw",
        'if (proof.header.typ === undefined) throw',
      ),
      dpop(
        'a signature that is not verified',
        'if (!(await verifySignature(proof.algorithm, key, proof.signed)))',
        'if (key === undefined)',
      ),
      dpop(
        'a replay memory that fails open',
        "throw new TokenError('proof_unverifiable', 'the replay memory did not answer', err)",
        'first = err !== undefined',
      ),
    ],
  },
  {
    name: 'decide',
    tests: [
      'any-subject',
      'bounds',
      'cold-and-warm',
      'views/contextual-tuples',
      'decide',
      'explain',
      'inputs',
      'models/merged-models',
      'properties',
      'rounds',
      'tangled',
      'type-restrictions',
      'wide/subject-side',
    ].map((name) => `test/pdp/engine/decide/${name}.test.ts`),
    mutants: [
      check(
        'a suspended member keeps what is held here',
        "if (membership !== null && membership.status !== 'active') return role?.allowed === false ? SUSPENDED : role",
        '',
      ),
      check('an unknown organization', 'if (node === null) return NOTHING_HELD', ''),
      check(
        'a permission key on another organization',
        'const byRole = app || (own && isPermissionQuestion(model, check.relation))',
        'const byRole = app || isPermissionQuestion(model, check.relation)',
      ),
      check(
        'missing rows count as a denial',
        'if (related === UNKNOWN || role === undefined) return undefined',
        'if (role === undefined) return undefined',
      ),
      check(
        'a tuple on an app',
        'const byTuple = !app && (tier || isRelation(model, check))',
        'const byTuple = tier || isRelation(model, check)',
      ),
      near(
        'but not is not subtracted from what is near',
        'if (excluded === TRUE) return FALSE',
        'if (excluded === TRUE) return held',
      ),
      near('what is not near is not subtracted', 'return excluded === FALSE ? held : UNKNOWN', 'return held'),
      near('one of the parts of a near and is enough', 'if (truth === FALSE) return FALSE\n      if', 'if'),
      near(
        'a near parent of another type',
        'if (!allowed.types.has(terms.typeOf(parent))) continue',
        'if (terms === null) continue',
      ),
      near(
        'a parent on a condition is not looked for',
        'let result: Truth = allowed.conditional === null ? FALSE : UNKNOWN\n    for (const parent',
        'let result: Truth = FALSE\n    for (const parent',
      ),
      near(
        'a tuple with a condition is not looked for',
        'allowed === null || allowed.conditional === null ? FALSE : UNKNOWN',
        'FALSE',
      ),
      near('a tier is not looked for', 'if (isTierOf(this.#log, object, relation)) return UNKNOWN', ''),
      near(
        'what lies further away is denied',
        '|| !this.#count(1)) return UNKNOWN',
        '|| !this.#count(1)) return FALSE',
      ),
      // A near row that is missing is not here: whoever finds one missing notes it, and is then asked again, whatever it answered.
      expansion('but not is not subtracted', 'negative: part === subtract', 'negative: false'),
      expansion(
        'one of the parts of an and is enough',
        "const all = new Subgoal(goal.object, goal.type, goal.relation, null, 'all')",
        "const all = new Subgoal(goal.object, goal.type, goal.relation, null, 'operand')",
      ),
      expansion('a parent of another type', 'if (allowed.types.has(this.#terms.typeOf(parent))) this', 'this'),
      terms(
        'a wildcard of another type',
        'allowed?.wildcards.has(userset.type) === true && this.isOf(userset.type)',
        'allowed?.wildcards.has(userset.type) === true',
      ),
      terms(
        'a userset that the model does not allow',
        'return allowed === null || allowed.usersets.has(userset.type)',
        'return true',
      ),
      terms(
        'a subject type that the model does not allow',
        'return allowed.types.has(this.#subjectType) || allowed.usersets.has(this.#subjectType)',
        'return true',
      ),
      own('an inactive membership', "membership?.status !== 'active' || ", ''),
      terms(
        'a tier of another organization',
        'return MEMBERSHIP_RELATIONS.has(relation) && object.endsWith(log)',
        'return MEMBERSHIP_RELATIONS.has(relation)',
      ),
      expansion(
        'missing rows of usersets',
        'return this.#budget.missed()\n    }\n    const isWide',
        'return true\n    }\n    const isWide',
      ),
      search(
        'a bound that is exceeded is a denial',
        'if (this.#budget.missing) return UNKNOWN',
        'return this.#budget.missing ? UNKNOWN : FALSE',
      ),
      budget(
        'more tuples than the bound',
        'if (this.tuplesCount + tuples > this.#tuplesMax)',
        'if (this.tuplesCount + tuples > 2 * this.#tuplesMax)',
      ),
      settle(
        'what leans on itself holds',
        'for (const goal of unfounded) goal.truth = FALSE\n    passOn(unfounded)',
        'passOn(unfounded)',
      ),
      settle('one round for a but not', 'round === 1 || spend(members.length)', 'round === 1'),
    ],
  },
]
