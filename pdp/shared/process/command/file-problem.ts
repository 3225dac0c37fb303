/** Explains in words, instead of system codes, why a command cannot use a file. */

import { messageOf } from '../../base/error-message.ts'

const REASONS: { readonly [code: string]: string } = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
}

/** A sentence that begins with the file's name. */
export function fileProblem(path: string, error: unknown, verb: 'read' | 'written' = 'read'): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ENOENT') return verb === 'read' ? `${path} does not exist` : `${path}: its folder does not exist`
  if (code === 'EEXIST') return `${path} exists already`
  return `${path} cannot be ${verb}: ${REASONS[code] ?? messageOf(error)}`
}

export const doesNotExist = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT'
