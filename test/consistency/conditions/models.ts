/** The models that the history check switches between; one more has conditions. */
import type { Rules } from '../../support/reference.ts'
import { CONDITIONAL } from './world.ts'

/** A version of an app's model, as text and as the reference has it. */
export type AppModel = { readonly text: string; readonly rules: Rules }

/** The version with which this check and the simulation begin. */
export const INHERITED: AppModel = {
  text: 'model\n  schema 1.1\ntype doc\n  relations\n    define parent: [doc]\n    define editor: [user, group#member]\n    define viewer: [user, group#member] or editor or viewer from parent\n',
  rules: {
    doc: {
      parent: { direct: ['doc'] },
      editor: { direct: ['user', 'group#member'] },
      viewer: {
        or: [{ direct: ['user', 'group#member'] }, { same: 'editor' }, { from: 'parent', relation: 'viewer' }],
      },
    },
  },
}

/** Two versions of the app's model, which a manifest write switches between, as text and as the reference has it. */
export const MODELS: readonly AppModel[] = [
  INHERITED,
  {
    text: 'model\n  schema 1.1\ntype doc\n  relations\n    define parent: [doc]\n    define editor: [user]\n    define banned: [user, group#member]\n    define viewer: [user, user:*, group#member] but not banned\n',
    rules: {
      doc: {
        parent: { direct: ['doc'] },
        editor: { direct: ['user'] },
        banned: { direct: ['user', 'group#member'] },
        viewer: { base: { direct: ['user', 'user:*', 'group#member'] }, butNot: { same: 'banned' } },
      },
    },
  },
]
export const rulesOf = (model: string | null): Rules =>
  [...MODELS, CONDITIONAL].find((m) => m.text === model)?.rules ?? {}
