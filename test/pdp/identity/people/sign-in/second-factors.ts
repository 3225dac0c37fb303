/** People with authenticators, and a browser for each test in which they sign in. */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { codeOf } from '../../../../support/authenticator.ts'
import { type Answer, type Browser, createBrowser, hiddenFields, type PageForm } from '../../../../support/browser.ts'
import { createFlow } from '../../flow.ts'
import { createFlows } from '../../flows.ts'
import { CONTEXT, decode, openWorld, PASSWORD, type World } from '../../harness.ts'

class Scene {
  world!: World
  flow!: ReturnType<typeof createFlow>
  flows!: ReturnType<typeof createFlows>
  browser!: Browser
  /** What the pages of this test were. */
  steps: string[] = []
  /** The clock of the service, two seconds into a time step: no test runs into the next one. */
  offsetMs = 0
}

/** One world for the tests of a file. */
export function openSecondFactors(options: Parameters<typeof openWorld>[0] = {}) {
  const scene = new Scene()
  beforeAll(async () => {
    scene.world = await openWorld(options)
    scene.flow = createFlow(scene.world)
    scene.flows = createFlows(scene.world)
  })
  afterAll(() => scene.world.close())
  beforeEach(() => {
    scene.browser = createBrowser(scene.world.issuer)
    scene.steps = []
    scene.offsetMs = 32_000 - (Date.now() % 30_000)
    scene.world.time.offsetMs = scene.offsetMs
  })
  return { scene, ...peopleOf(scene), ...signInsOf(scene) }
}

function peopleOf(scene: Scene) {
  let people = 0
  /** A person of their own for each test, with one membership. */
  async function person(): Promise<string> {
    const { directory, store } = scene.world
    const id = `p${++people}`
    const passwordHash = (await directory.userByEmail('eve@x.example'))?.passwordHash ?? null
    await directory.putUser({ id, email: `${id}@x.example`, emailVerified: true, name: id, passwordHash }, CONTEXT)
    const membership = { role: 'viewer', status: 'active' } as const
    await store.write('acme', [{ kind: 'membership', user: id, membership }], { context: CONTEXT })
    return id
  }
  const enroll = async (id: string) => (await scene.world.identity.secondFactor.enroll(id, CONTEXT)).secret
  async function enrolled(): Promise<{ id: string; secret: string }> {
    const id = await person()
    return { id, secret: await enroll(id) }
  }
  return { person, enroll, enrolled }
}

function signInsOf(scene: Scene) {
  const now = () => Date.now() + scene.world.time.offsetMs
  /** Codes are good once, so a test that needs several takes them one step apart. */
  const codeAt = (secret: string, step = 0) => codeOf(secret, now() + step * 30_000)
  /** Answers each page as the person would; what the pages were is in `steps`. */
  const answers =
    (id: string, secret?: string, step = 0) =>
    (page: PageForm): Answer => {
      scene.steps.push(page.step)
      if (page.step === 'login') return { action: 'login', email: `${id}@x.example`, password: PASSWORD }
      if (page.step === 'totp') return { action: 'code', code: secret === undefined ? '000000' : codeAt(secret, step) }
      return { action: 'continue' }
    }
  const authorize = (parameters: { [name: string]: string }, answer: (page: PageForm) => Answer) =>
    scene.browser.follow(scene.flow.authorizeUrl(parameters), answer)
  async function idToken(end: URL) {
    const answer = await scene.flow.redeem(end.searchParams.get('code') ?? '')
    return { id: decode(String(answer.body.id_token)).payload, access: String(answer.body.access_token) }
  }
  /** Starts a sign-in and gives the password; the page for the code, and where it is. */
  async function atCodePage(id: string): Promise<{ path: string; html: string }> {
    const path = (await scene.browser.send(scene.flow.authorizeUrl({}))).headers.get('location') ?? ''
    const form = { action: 'login', email: `${id}@x.example`, password: PASSWORD }
    return { path, html: await (await scene.browser.send(path, { form })).text() }
  }
  const giveCode = (at: { path: string; html: string }, code: string) =>
    scene.browser.send(at.path, { form: { ...hiddenFields(at.html), action: 'code', code } })
  return { now, codeAt, answers, authorize, idToken, atCodePage, giveCode }
}
