/** The service behind the sidecars, as a process of its own: it says who it was told is asking. */
import { createServer } from 'node:http'

createServer((req, res) => {
  res.writeHead(200, { 'content-type': 'application/json' })
  res.end(JSON.stringify({ subject: req.headers['x-auth-subject'] ?? null, target: req.url }))
}).listen(Number(process.env.PORT), '127.0.0.1')
