export const setImmediate = () => new Promise((done) => globalThis.setImmediate(done))
