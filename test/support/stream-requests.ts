/** Messages of a stream to the PDP, at random, for those who write and those who read them. */
import fc from 'fast-check'

/** Any text that UTF-8 can say. */
export const anyText = fc.string({ unit: 'binary', maxLength: 200 }).map((s) => s.toWellFormed())
export const anyNumber = fc.integer({ min: 0, max: 2 ** 32 - 1 })

export const anyStreamRequest = fc.record({
  tokens: fc.array(fc.record({ handle: anyNumber, token: anyText }), { maxLength: 3 }),
  questions: fc.array(
    fc.record({
      id: anyNumber,
      handle: anyNumber,
      permissions: fc.array(fc.record({ relation: anyText, resource: anyText, any: fc.boolean() }), { maxLength: 3 }),
      entitlements: fc.array(anyText, { maxLength: 3 }),
      context: anyText,
      watched: fc.boolean(),
      requestId: anyText,
      traceparent: anyText,
      clientAddress: anyText,
      route: anyText,
      guest: anyText,
    }),
    { maxLength: 4 },
  ),
  cancel: fc.array(anyNumber, { maxLength: 4 }),
})
