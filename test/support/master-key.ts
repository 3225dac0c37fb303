/** The master key of identity services in tests, by which the run's signing keys are sealed. */
export const MASTER_KEY = Buffer.alloc(32, 7)
