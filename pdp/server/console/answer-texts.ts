/** An answer in words, and the same question as a test, a command and code. */

import { type Html, html } from '../../shared/base/html.ts'
import type { PermissionResult } from '../../shared/domain/decision.ts'
import { formatTuple } from '../../shared/domain/names.ts'
import { REASONS } from '../../shared/domain/reasons.ts'
import { name } from './parts.ts'
import { actorsMeant, appMeant, NO_APP, readSubject, readSupposed, type Supposed } from './question.ts'

export type FormQuestion = {
  readonly organization: string
  readonly subject: string
  readonly relation: string
  readonly resource: string
  /** The app whose roles answer a permission key on the organization itself; null: every app. */
  readonly app: string | null
  /** Ids of clients that act for the subject, the last one first, and the scopes of their token. */
  readonly actors: readonly string[]
  readonly scopes: readonly string[]
}

/** The question in words. A person is named by the id alone: "Is bob viewer of invoice:7?" */
export const questionText = ({ subject, relation, resource }: FormQuestion): string =>
  isPermissionKey(relation)
    ? `May ${personIn(subject)} do ${relation} on ${resource}?`
    : VERB.test(relation)
      ? `Can ${personIn(subject)} ${verbIn(relation)} ${resource}?`
      : `Is ${personIn(subject)} ${relation} of ${resource}?`

export function reasonSentence({ subject, relation, resource }: FormQuestion, result: PermissionResult): Html {
  const [who, what, where] = [name(personIn(subject)), name(relation), name(resource)]
  const reason = REASONS[result.reasonCode]
  if (result.error !== undefined) return html`Whether ${who} has ${what} on ${where} cannot be said: ${reason}.`
  if (isPermissionKey(relation))
    return html`${who} ${result.allowed ? 'may' : 'may not'} do ${what} on ${where}: ${reason}.`
  if (VERB.test(relation))
    return html`${who} ${result.allowed ? 'can' : 'cannot'} ${name(verbIn(relation))} ${where}: ${reason}.`
  return html`${who} is ${result.allowed ? '' : 'not '}${what} of ${where}: ${reason}.`
}

/** A relation that is named like an action, such as `can_view`. */
const VERB = /^can_[a-z]/
const verbIn = (relation: string): string => relation.slice('can_'.length).replaceAll('_', ' ')
export const personIn = (subject: string): string => subject.replace(/^user:/, '')
/** True for a permission key, in the form that manifests use. */
const isPermissionKey = (relation: string): boolean => relation.includes(':')

/** The text as one word of a POSIX shell, whatever it contains. */
export const shellWord = (text: string): string =>
  /^[A-Za-z0-9_./:@#%+=,-]+$/.test(text) && !text.startsWith('#') ? text : `'${text.replaceAll("'", "'\\''")}'`

type Copy = { readonly title: string; readonly text: string }
type Question = { readonly asked: FormQuestion; readonly supposed: Supposed; readonly allowed: boolean }

/** The question as a test, a command and code, or a line that says what the form cannot express. Throws as readSupposed does. */
export function copies(issuer: string, of: Question): readonly Copy[] {
  const meant = meaningOf(of)
  return [
    { title: 'Command line', text: asCommand(of, meant) },
    {
      title: 'curl (a client_credentials token of the organization, with decisions:read)',
      text: asCurl(issuer, of, meant),
    },
    { title: 'Test of a store file (.fga.yaml)', text: asTest(of, meant) },
    { title: 'TypeScript', text: asTypeScript(of, meant) },
  ]
}

type Meaning = ReturnType<typeof meaningOf>

/** The question's values as the answer used them: a time without a zone is UTC, wherever the text is pasted. */
function meaningOf({ asked: { subject }, supposed }: Question) {
  const { contextualTuples = [], withoutTuples = [], asOfMs, context } = readSupposed(supposed)
  const asOf = asOfMs === undefined ? null : new Date(asOfMs).toISOString()
  return { subject: readSubject(subject), added: contextualTuples, removed: withoutTuples, asOfMs, asOf, context }
}

const text = (value: unknown): string => JSON.stringify(value)

function asCommand({ asked }: Question, { added, removed, asOf, context }: Meaning): string {
  const { organization, subject, relation, resource } = asked
  const flags = [
    ...added.map((tuple) => ['--with', formatTuple(tuple)]),
    ...removed.map((tuple) => ['--without', formatTuple(tuple)]),
    ...(asOf === null ? [] : [['--as-of', asOf]]),
    ...(context === undefined ? [] : [['--context', text(context)]]),
    ...(asked.app === null ? [] : asked.app === NO_APP ? [['--no-app']] : [['--app', asked.app]]),
    ...asked.actors.map((id) => ['--actor', id]),
    ...(asked.scopes.length === 0 ? [] : [['--scope', asked.scopes.join(' ')]]),
  ]
  const words = [subject, relation, resource, '-o', organization, ...flags.flat()].map(shellWord)
  return `portcullis explain ${words.join(' ')}`
}

/** The members that make a difference: the app, for example, counts only for keys on the organization itself. */
const byWhom = ({ app, resource, actors, scopes }: FormQuestion): object => ({
  ...((app !== null || resource.startsWith('organization:')) && app !== NO_APP && { app: appMeant(app) }),
  ...(actors.length > 0 && { actors }),
  ...(scopes.length > 0 && { scopes }),
})

function asCurl(issuer: string, { asked }: Question, { subject, added, removed, asOf, context }: Meaning): string {
  const { relation, resource } = asked
  const body = {
    subject,
    permissions: [{ relation, resource }],
    explain: true,
    ...(added.length === 0 ? {} : { contextual_tuples: added.map(formatTuple) }),
    ...(removed.length === 0 ? {} : { without_tuples: removed.map(formatTuple) }),
    ...(asOf === null ? {} : { as_of: asOf }),
    ...(context === undefined ? {} : { context }),
    ...byWhom(asked),
  }
  return `curl ${new URL('/oauth/decisions', issuer).href} -H "Authorization: Bearer $TOKEN" \\\n  -H 'Content-Type: application/json' -d ${shellWord(text(body))}`
}

function asTest({ asked, allowed }: Question, { added, removed, asOf, context }: Meaning): string {
  const { subject, relation, resource, app, actors } = asked
  const lost = [
    ...removed.map((tuple) => `leave ${text(formatTuple(tuple))} out of its tuples`),
    ...(asOf === null ? [] : [`its tuples have to be those of ${asOf}`]),
    ...(app === null ? [] : [`it has no roles of app ${text(app)}`]),
    ...(actors.length === 0 ? [] : [`${actors.map(text).join(' and ')} may do no more than that`]),
  ]
  return [
    ...lost.map((what) => `# A store file cannot say all of this question: ${what}.`),
    'tests:',
    `  - name: ${text(`${subject} ${relation} ${resource}`)}`,
    ...(added.length === 0 ? [] : ['    tuples:']),
    ...added.map(
      (tuple) =>
        `      - {user: ${text(tuple.subject)}, relation: ${text(tuple.relation)}, object: ${text(tuple.object)}}`,
    ),
    '    check:',
    `      - user: ${text(subject)}`,
    `        object: ${text(resource)}`,
    ...(context === undefined ? [] : [`        context: ${text(context)}`]),
    '        assertions:',
    `          ${text(relation)}: ${String(allowed)}`,
  ].join('\n')
}

function asTypeScript({ asked }: Question, { subject, added, removed, asOfMs, context }: Meaning): string {
  const { organization, relation, resource } = asked
  const request = {
    organization,
    subject,
    permissions: [{ relation, resource }],
    explain: true,
    ...byWhom(asked),
    ...actorsMeant(asked.actors),
    ...(added.length === 0 ? {} : { contextualTuples: added }),
    ...(removed.length === 0 ? {} : { withoutTuples: removed }),
    ...(asOfMs === undefined ? {} : { asOfMs }),
    ...(context === undefined ? {} : { context }),
  }
  return `const { permissions } = await pdp.decide(${JSON.stringify(request, null, 2)})`
}
