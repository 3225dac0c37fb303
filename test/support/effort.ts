/** How much of a long proof runs: `npm test` plays a part, `npm run test:long` plays all of it. */
export const LONG = process.env.PORTCULLIS_LONG_TESTS === 'yes'

export const effort = ({ short, long }: { readonly short: number; readonly long: number }): number =>
  LONG ? long : short
