/** Runs one check of bcrypt (imported-hash.ts) in a thread, because it computes for up to a second. */
import { parentPort, workerData } from 'node:worker_threads'
import { compareSync } from 'bcryptjs'

const { secret, stored } = workerData
parentPort?.postMessage(compareSync(secret, stored))
