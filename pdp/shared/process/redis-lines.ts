/** Log lines about Redis. Apart from `token/redis.ts`, which embedders install: they have no logger of ours. */

import type { Log } from './log.ts'

/** One line when the Redis of `url` fails for `part`, the use of the connection, and one when it takes a write again. */
export function redisLines(log: Log, part: 'entitlements' | 'proofs' | 'sessions', url: string) {
  // The hosts alone: before them may stand a password.
  const address = /\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(url)?.[1]
  let isWell = true
  return {
    onError({ message }: Error): void {
      if (isWell) log.warn({ event: 'redis_failed', part, address, reason: message })
      isWell = false
    },
    onWritten(): void {
      if (!isWell) log.info({ event: 'redis_back', part, address })
      isWell = true
    },
  }
}
