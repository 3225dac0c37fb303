/** Checks tuples and questions against a model: the tuple must be allowed, and all names in the question must exist. */
import type { Model } from '../../engine/decide/model.ts'
import { restrictionIssue } from '../../engine/decide/restrictions.ts'
import { didYouMean } from '../../shared/base/nearest.ts'
import type { Assertion } from './store-file.ts'
import type { FileTuple } from './tuple-file.ts'

// OpenFGA's own grammar, but ids have neither white space nor `#`, at which names are split again.
const TYPE = /^[^:#@*\s]{1,254}$/
const RELATION = /^[^:#@*\s]{1,50}$/
const ID = /^(?!\*$)[^#\s]{1,256}$/

function partsOf(name: string) {
  const colon = name.indexOf(':')
  const hash = name.indexOf('#')
  const parts = {
    type: name.slice(0, Math.max(colon, 0)),
    id: name.slice(colon + 1, hash < 0 ? undefined : hash),
    relation: hash < 0 ? null : name.slice(hash + 1),
  }
  if (!TYPE.test(parts.type) || (parts.relation !== null && !RELATION.test(parts.relation))) return null
  return ID.test(parts.id) || (parts.id === '*' && parts.relation === null) ? parts : null
}

const typeIssue = (model: Model, type: string): string | null =>
  model.has(type) ? null : `the model has no type "${type}"${didYouMean(type, model.keys())}`

function relationIssue(model: Model, type: string, relation: string): string | null {
  const issue = typeIssue(model, type)
  if (issue !== null) return issue
  const relations = model.get(type)
  if (relations?.has(relation) === true) return null
  return `type "${type}" has no relation "${relation}"${didYouMean(relation, relations?.keys() ?? [])}`
}

function objectIssue(model: Model, object: string, relation: string): string | null {
  const parts = partsOf(object)
  if (parts === null || parts.relation !== null || parts.id === '*') return `object "${object}" is not <type>:<id>`
  return relationIssue(model, parts.type, relation)
}

function userIssue(model: Model, user: string): string | null {
  const parts = partsOf(user)
  if (parts === null) return `user "${user}" is not <type>:<id>, <type>:<id>#<relation> or <type>:*`
  return parts.relation === null ? typeIssue(model, parts.type) : relationIssue(model, parts.type, parts.relation)
}

/** The reason for which the model does not allow the tuple; null: it does. */
export function tupleIssue(model: Model, { object, relation, user, condition }: FileTuple): string | null {
  const issue = objectIssue(model, object, relation) ?? userIssue(model, user)
  const subject = partsOf(user)
  if (issue !== null || subject === null) return issue
  const tuple = { object, relation, subject: user, ...(condition === null ? {} : { condition }) }
  const restriction = restrictionIssue(model, tuple)
  return restriction === null ? null : `${restriction}: ${user}`
}

/** The reason why the model cannot answer the question; null: it can. */
export function questionIssue(model: Model, assertion: Assertion): string | null {
  const { relation } = assertion
  switch (assertion.kind) {
    case 'check':
      return objectIssue(model, assertion.object, relation) ?? userIssue(model, assertion.user)
    case 'list_objects':
      return relationIssue(model, assertion.type, relation) ?? userIssue(model, assertion.user)
    case 'list_users': {
      const filters = assertion.filters.map((filter) =>
        filter.relation === null ? typeIssue(model, filter.type) : relationIssue(model, filter.type, filter.relation),
      )
      return objectIssue(model, assertion.object, relation) ?? filters.find((issue) => issue !== null) ?? null
    }
  }
}
