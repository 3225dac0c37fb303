/** `injector onboard-namespaces`: a process that gives labelled namespaces the objects that their sidecars need. */
import type { Command } from 'commander'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { ConfigError, runCommand } from '../../../pdp/shared/process/exit.ts'
import { createLog, type Log } from '../../../pdp/shared/process/log.ts'
import { openLogOutput } from '../../../pdp/shared/process/log-output.ts'
import { startRepeated } from '../../../pdp/shared/process/repeated-runs.ts'
import { createShutdown } from '../../../pdp/shared/process/shutdown.ts'
import { apiServerProblem, type KubeApi, openKubeApi } from '../certificate/kube-api.ts'
import { type Done, onboard } from './onboard.ts'
import { readOnboarding } from './settings.ts'

type Options = { readonly settings: string; readonly apiServer: string; readonly tokenFile: string }

const EVERY_MS = 10_000
const SHUTDOWN_TIMEOUT_MS = 10_000

export function addOnboardNamespaces(injector: Command, io: NodeJS.Process): void {
  injector
    .command('onboard-namespaces')
    .description(
      'Bring namespaces with the label portcullis.dev/inject what their sidecars need: authorities, network policies, and the right to ask the PDP.',
    )
    .option('--settings <path>', 'file with its settings', '/etc/portcullis/onboarding/onboarding.yaml')
    .option('--api-server <origin>', 'the API server', 'https://kubernetes.default.svc')
    .option('--token-file <path>', 'token of the ServiceAccount', '/var/run/secrets/kubernetes.io/serviceaccount/token')
    .action((options: Options) => runCommand(() => serve(options, io), io))
}

async function serve({ settings, apiServer, tokenFile }: Options, io: NodeJS.Process): Promise<void> {
  const problem = apiServerProblem(apiServer)
  if (problem !== null) throw new ConfigError([problem])
  readOnboarding(settings)
  const service = 'portcullis-onboarding'
  const log = createLog({ service, level: 'info', destination: openLogOutput(service) })
  const api = openKubeApi({ server: apiServer, tokenFile })
  const shutdown = createShutdown({ log, timeoutMs: SHUTDOWN_TIMEOUT_MS })
  shutdown.onSignals((status) => io.exit(status))
  const failed = (err: unknown): void => log.error({ event: 'namespaces_not_onboarded', reason: messageOf(err) })
  const repeated = { intervalMs: EVERY_MS, failed, isAlone: true } as const
  shutdown.add('onboarding', startRepeated(createRound(api, settings, log), repeated))
}

/** Reads the settings at each round, since the chart may change their file. */
function createRound(api: KubeApi, path: string, log: Log): () => Promise<void> {
  const done: Done = new Map()
  return async () => {
    const settings = readOnboarding(path)
    const { changed, foreign, failed, callers } = await onboard(api, settings, { done, nowMs: Date.now() })
    for (const namespace of changed) log.info({ event: 'namespace_onboarded', namespace })
    for (const object of foreign) log.warn({ event: 'object_of_others', object })
    for (const { namespace, reason } of failed) log.error({ event: 'namespace_not_onboarded', namespace, reason })
    if (callers) log.info({ event: 'callers_changed' })
  }
}
