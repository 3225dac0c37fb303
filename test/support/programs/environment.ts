/** What a program of ours gets of our environment, when a test gives it one of its own. */

/** The way to other programs, and where Node keeps what it compiled: half of a program's start is reading its sources. */
export const PROGRAM_ENV: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
}
