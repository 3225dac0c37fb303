/** Texts and requests of a given size. */
import { type ClientRequest, syntheticRequest } from '../../../sidecar/http/client-request.ts'

/** Nearly `size` characters: `unit` as often as there is room, between `before` and `after`. */
export const filled = (size: number, unit: string, { before = '', after = '' } = {}): string =>
  `${before}${unit.repeat(Math.max(0, Math.floor((size - before.length - after.length) / unit.length)))}${after}`

/** The work whose error is part of it: what is refused is bounded like what is not. */
export const refusable = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (err) {
    return err
  }
}

/** `fields`: names and values in turn, after a Host field. */
export const requestWith = (fields: readonly string[], { method = 'GET', target = '/' } = {}): ClientRequest =>
  syntheticRequest({ method, target, raw: ['host', 'app.test', ...fields] })
