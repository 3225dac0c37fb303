/** The code flow against a test world, by openid-client where a good client would do, by hand where it would not. */
import { createHash } from 'node:crypto'
import { createBrowser } from '../../support/browser.ts'
import { answerPage, type SignInRequest, signIn } from '../../support/sign-in.ts'
import { decode, PASSWORD, postToken, REDIRECT, SECRET, type World } from './harness.ts'

export const ALL_SCOPES = 'openid profile email groups organizations'
export const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

type Parameters = { readonly [name: string]: string | undefined }

export function createFlow(world: Pick<World, 'issuer'>) {
  const as = (person: string, more: Partial<SignInRequest> = {}): SignInRequest => ({
    issuer: world.issuer,
    clientId: 'web',
    clientSecret: SECRET,
    redirectUri: REDIRECT,
    email: `${person}@x.example`,
    password: PASSWORD,
    ...more,
  })
  const accessClaims = async (request: SignInRequest) => decode((await signIn(request)).tokens.access_token).payload

  function authorizeUrl(parameters: Parameters): string {
    const all = {
      client_id: 'web',
      response_type: 'code',
      redirect_uri: REDIRECT,
      scope: 'openid',
      state: 'st',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      ...parameters,
    }
    const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
    return `${world.issuer}/oauth/authorize?${new URLSearchParams(given)}`
  }

  /** Where the flow ends for a person who answers every page. */
  const authorize = (parameters: Parameters, person = 'eve'): Promise<URL> =>
    createBrowser(world.issuer).follow(authorizeUrl(parameters), (page) => answerPage(page, as(person)))

  /** Answers to response types other than `code` come in the fragment. */
  async function errorOf(parameters: Parameters): Promise<string | null> {
    const { searchParams, hash } = await authorize(parameters)
    return searchParams.get('error') ?? new URLSearchParams(hash.slice(1)).get('error')
  }

  async function newCode(person?: string): Promise<string> {
    const code = (await authorize({}, person)).searchParams.get('code')
    if (code === null) throw new Error('no code')
    return code
  }

  const redeem = (code: string, form: { readonly [name: string]: string } = {}, id = 'web') =>
    postToken(
      world,
      { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER, ...form },
      { id },
    )

  return { as, accessClaims, authorizeUrl, authorize, errorOf, newCode, redeem }
}
