/**
 * Flags of Node for each program. Commands, scripts, images and Pods hold them as text; a test keeps those equal to these.
 *
 * V8's young generation takes up to three times a semi-space, by default 64 MiB. Measured beside each other: with 16 a PDP took
 * 0.87 of the CPU time for a question over HTTP, and 58 MB less memory; with 8 it took as much time as with 64.
 * A sidecar took 0.89 of the CPU time for a request with 8 beside 4, and 7 MB more memory; 16 took 23 MB more and no less time.
 */
export const NODE_FLAGS = {
  pdp: ['--max-semi-space-size=16'],
  sidecar: ['--max-semi-space-size=8'],
} as const
