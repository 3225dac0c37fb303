// A service behind the sidecar. Whoever gets here may read this invoice; the field says who it is.
// Install: npm install express
// Start: node express-app.mjs
import express from 'express'

const app = express()
app.get('/invoices/:id', (request, response) => {
  response.send(`invoice ${request.params.id} for ${request.get('X-Auth-Subject')}\n`)
})
app.listen(3000, '127.0.0.1')
