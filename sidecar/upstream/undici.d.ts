/** Types for the files of undici that are imported one by one: without its Fetch, WebSocket and caches a pod needs 11 MB less. */
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
