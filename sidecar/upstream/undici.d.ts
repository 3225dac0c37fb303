/** The parts of undici that forward, without its Fetch, WebSocket and caches: 11 MB less in every pod. The version is exact. */
declare module 'undici/lib/dispatcher/pool.js' {
  const pool: typeof import('undici').Pool
  export = pool
}
declare module 'undici/lib/core/connect.js' {
  const connector: typeof import('undici').buildConnector
  export = connector
}
declare module 'undici/lib/core/symbols.js' {
  const symbols: { readonly kParser: unique symbol }
  export = symbols
}
