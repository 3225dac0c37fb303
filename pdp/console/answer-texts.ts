/** An answer in words, and the same question as a test, a command and code. */
import type { PermissionResult } from '../domain/decision.ts'
import { REASONS } from '../domain/reasons.ts'
import { type Html, html } from '../process/pages/html.ts'
import { name } from './parts.ts'
import type { Supposed } from './question.ts'

export type Asked = {
  readonly organization: string
  readonly subject: string
  readonly relation: string
  readonly resource: string
  /** Whose roles answer a permission key on the organization. */
  readonly app: string | null
}

export function reasonSentence({ subject, relation, resource }: Asked, result: PermissionResult): Html {
  const has = result.allowed ? 'has' : result.error === undefined ? 'does not have' : 'cannot be said to have'
  return html`${name(subject)} ${has} ${name(relation)} on ${name(resource)}: ${REASONS[result.reasonCode]}.`
}

const list = (text: string): readonly string[] =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** For a POSIX shell, whatever the text holds. */
export const shellWord = (text: string): string =>
  /^[A-Za-z0-9_./:@#%+=,-]+$/.test(text) && !text.startsWith('#') ? text : `'${text.replaceAll("'", "'\\''")}'`

export function copies(
  issuer: string,
  of: { readonly asked: Asked; readonly supposed: Supposed; readonly allowed: boolean },
): readonly { readonly title: string; readonly text: string }[] {
  const { asked, supposed, allowed } = of
  const { organization, subject, relation, resource } = asked
  const [added, removed] = [list(supposed.with), list(supposed.without)]
  const flags = [
    ...added.map((tuple) => `--with ${shellWord(tuple)}`),
    ...removed.map((tuple) => `--without ${shellWord(tuple)}`),
    ...(supposed.asOf === '' ? [] : [`--as-of ${shellWord(supposed.asOf)}`]),
  ]
  const words = [subject, relation, resource, '-o', organization].map(shellWord)
  const [type = '', rest = ''] = [subject.slice(0, subject.indexOf(':')), subject.slice(subject.indexOf(':') + 1)]
  const [id = '', userset] = rest.split('#')
  const body = {
    subject: userset === undefined ? { type, id } : { type, id, relation: userset },
    permissions: [{ relation, resource }],
    explain: true,
    ...(added.length === 0 ? {} : { contextual_tuples: added }),
    ...(removed.length === 0 ? {} : { without_tuples: removed }),
    ...(supposed.asOf === '' ? {} : { as_of: supposed.asOf }),
  }
  const text = (value: unknown): string => JSON.stringify(value)
  return [
    { title: 'Command line', text: `portcullis explain ${[...words, ...flags].join(' ')}` },
    {
      title: 'curl (a client_credentials token of the organization, with decisions:read)',
      text: `curl ${new URL('/oauth/decisions', issuer).href} -H "Authorization: Bearer $TOKEN" \\\n  -H 'Content-Type: application/json' -d ${shellWord(text(body))}`,
    },
    {
      title: 'Test of a store file (.fga.yaml)',
      text: `tests:\n  - name: ${text(`${subject} ${relation} ${resource}`)}\n    check:\n      - user: ${text(subject)}\n        object: ${text(resource)}\n        assertions:\n          ${text(relation)}: ${String(allowed)}`,
    },
    {
      title: 'TypeScript',
      text: `const { permissions } = await pdp.decide(${JSON.stringify({ organization, subject: body.subject, permissions: body.permissions, explain: true }, null, 2)})`,
    },
  ]
}
