/** The settings of onboarding: one YAML file that the chart writes. */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { fileProblem } from '../../../pdp/shared/process/command/file-problem.ts'
import { ConfigError } from '../../../pdp/shared/process/exit.ts'
import type { Mode } from '../pod/injection.ts'
import { isObject, type Json, type JsonObject, listAt, objectAt, textAt, textsAt } from '../pod/json.ts'

export type OnboardingSettings = {
  /** The namespace of the chart. */
  readonly namespace: string
  /** Names of namespaces that may onboard themselves; `*` matches any characters. */
  readonly namespaces: readonly string[]
  /** Labels that these namespaces must have as well. */
  readonly matchLabels: { readonly [name: string]: string }
  /** Names of namespaces that never may. */
  readonly excluded: readonly string[]
  /** The ConfigMap of the chart's namespace whose ca.crt each namespace gets as a copy of the same name; null: none. */
  readonly authorities: string | null
  /** The ConfigMap of the chart's namespace with the callers of the PDP; null: none. */
  readonly callers: string | null
  /** The NetworkPolicies to create, by the mode of the label. */
  readonly policies: { readonly [mode in Mode]: readonly JsonObject[] }
}
const PATTERN = /^[a-z0-9*](?:[a-z0-9*-]{0,61}[a-z0-9*])?$/

/** Throws ConfigError. */
export function readOnboarding(path: string): OnboardingSettings {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (err) {
    throw new ConfigError([`the settings of onboarding: ${fileProblem(path, err)}`])
  }
  try {
    return parseOnboarding(text)
  } catch (err) {
    throw new ConfigError([`${path}: ${messageOf(err)}`])
  }
}

/** Reads the settings. Throws if the text is not in the chart's form. */
export function parseOnboarding(text: string): OnboardingSettings {
  const given: unknown = parse(text)
  const settings = isObject(given) ? given : {}
  const namespaces = texts(settings.namespaces, 'namespaces')
  const odd = namespaces.find((pattern) => !PATTERN.test(pattern))
  if (odd !== undefined || namespaces.length === 0)
    throw new Error(`namespaces must list names such as team-*, not ${JSON.stringify(odd ?? [])}`)
  const policies = objectAt(settings.policies, 'policies')
  return {
    namespace: textAt(settings.namespace, 'namespace') ?? '',
    namespaces,
    matchLabels: Object.fromEntries(textsAt(settings.matchLabels, 'matchLabels')),
    excluded: texts(settings.excluded, 'excluded'),
    authorities: textAt(settings.authorities, 'authorities'),
    callers: textAt(settings.callers, 'callers'),
    policies: { enabled: objects(policies.enabled), required: objects(policies.required) },
  }
}

const texts = (value: Json | undefined, place: string): readonly string[] =>
  listAt(value, place).map((item) => textAt(item, place) ?? '')

const objects = (value: Json | undefined): readonly JsonObject[] =>
  listAt(value, 'policies').map((item) => objectAt(item, 'policies'))
