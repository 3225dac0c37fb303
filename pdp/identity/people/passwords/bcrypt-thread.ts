/** The thread of one check of bcrypt (imported-hash.ts): up to a second of computing, while everything else goes on. */
import { parentPort, workerData } from 'node:worker_threads'
import { compareSync } from 'bcryptjs'

const { secret, stored } = workerData
parentPort?.postMessage(compareSync(secret, stored))
