/** What is said of a model that is not valid: the place, what is wrong there and what to do; never a library's own words. */
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../../pdp/engine/decide/language/model-language.ts'
import { didYouMean, nearestName } from '../../../../../pdp/shared/base/nearest.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'

const LIBRARY =
  /viable|mismatched|extraneous|expecting|token recognition|impossible|potential loop|entrypoint|EOF|undefined|`/
const DOC = 'model\n  schema 1.1\ntype doc\n  relations\n'

describe('a model', () => {
  test.each<[string, string, RegExp]>([
    ['that is empty', '', /^1:1 a model begins with/],
    ['that is something else', 'hello', /^1:1 a model begins with/],
    ['without types', 'model\n  schema 1.1\n', /^1:1 .*no type; add one/],
    ['of another schema', 'model\n  schema 1.4\ntype a\n', /^2:\d+ .*write " {2}schema 1.1"/],
    ['with a misspelt word', `${DOC}    defin a: [user]\n`, /^5:\d+ "defin a: \[user\]" is not understood/],
    ['with open brackets', `${DOC}    define a: [user\n`, /is missing here|not understood/],
    ['with mixed operators', `${DOC}    define a: [user]\n    define b: a or a and a\n`, /^6:/],
    ['with an unknown type', `${DOC}    define a: [usr]\n`, /^5:\d+ there is no type "usr"; did you mean "user"\?/],
    [
      'with an unknown relation',
      `${DOC}    define editor: [user]\n    define a: edtior\n`,
      /^6:.*"edtior"; did you mean "editor"/,
    ],
    ['with an unknown userset', `${DOC}    define a: [group#x]\n`, /^5:.*type "group" has no relation "x"/],
    ['with a relation twice', `${DOC}    define a: [user]\n    define a: [user]\n`, /^6:.*"a" is defined twice/],
    ['with a type twice', 'model\n  schema 1.1\ntype a\ntype a\n', /"a" is declared twice/],
    ['with a cycle alone', `${DOC}    define a: b\n    define b: a\n`, /^5:.*"a" of type "doc".*add the subjects/],
    ['with a relation of itself', `${DOC}    define a: a\n`, /^5:.*"a" of type "doc"/],
    [
      'with a parent that is a rule',
      `${DOC}    define p: [doc] or q\n    define q: [doc]\n    define a: [user] or a from p\n`,
      /^7:.*"p" comes after "from"/,
    ],
    [
      'with a parent that cannot have it',
      `${DOC}    define p: [user]\n    define a: viewer from p\n`,
      /"viewer from p" finds nothing/,
    ],
    ['of before 1.1', 'type doc\n  relations\n    define a as self\n', /before schema 1\.1.*\[user\]/],
    ['without a schema', 'model\ntype doc\n', /the line " {2}schema 1.1" is missing/],
    ['with operators side by side', `${DOC}    define a: [user] or b but not c\n`, /^5:.*parentheses say.*\(a or b\)/],
    ['with a word of the language as a name', `${DOC}    define from: [user]\n`, /^5:.*"from" is a word/],
    [
      'with a parameter of any type',
      `${DOC}    define a: [user with c]\ncondition c(x: map<any>) { true }\n`,
      /^6:.*no parameters of type "any".*JSON/,
    ],
    ['with a long name', `${DOC}    define ${'a'.repeat(65)}: [user]\n`, /^5:5 the name "a+" .*longer than 64 bytes/],
    ['with an unknown condition', `${DOC}    define a: [user with lat]\n`, /^5:26 there is no condition "lat"/],
  ])('%s is refused with its place and in plain words', (_, text, message) => {
    const refused = (): unknown => {
      try {
        return compileModel(text)
      } catch (err) {
        return err
      }
    }
    const error = refused()
    expect(error).toBeInstanceOf(PdpError)
    const issues = error instanceof PdpError ? error.issues.map((issue) => `${issue.place} ${issue.message}`) : []
    expect(issues.filter((issue) => message.test(issue))).not.toEqual([])
    expect(issues.filter((issue) => LIBRARY.test(issue))).toEqual([])
  })
})

describe('the nearest name', () => {
  const NAMES = ['viewer', 'editor', 'can_view', 'user', 'a']
  test.each([
    ['viewr', 'viewer'],
    ['Viewer', 'viewer'],
    ['editro', 'editor'],
    ['can_veiw', 'can_view'],
    ['usr', 'user'],
  ])('of %s is %s', (name, nearest) => {
    expect(nearestName(name, NAMES)).toBe(nearest)
    expect(didYouMean(name, NAMES)).toBe(`; did you mean "${nearest}"?`)
  })
  test.each(['', 'owner', 'x'.repeat(10_000), 'reader', 'viewer'])('of %s is none', (name) => {
    expect(
      nearestName(
        name,
        NAMES.filter((one) => one !== 'viewer' && one !== 'a'),
      ),
    ).toBeNull()
  })
})
