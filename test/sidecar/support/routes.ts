/** Routes that several suites send requests to, and what the PDP allows there. */

/** Paths and hosts: what they may look like. Alice may do it. */
export const PATH_ROUTES = `
GET /public/**: public
GET /public/{name}: viewer page:{name}
GET /admin/**: admin system:main
GET /invoices/{id}: viewer invoice:{id}
POST /invoices/{id}/approve: approver invoice:{id}
GET /registry/{name}: {check: "viewer package:{name}", encoded_slash: keep}
GET /matrix/{name}: {check: "viewer page:{name}", semicolon: keep}
"* admin.app.test/**": admin system:main
POST /public/upload: public
`.trim()
export const PATH_GRANTS = [
  'viewer page:x',
  'viewer invoice:1',
  'approver invoice:1',
  'viewer package:@scope/pkg',
  'viewer page:a;v=1',
].map((grant) => `alice ${grant}`)

/** Every kind of check, and every part of a request that a check may name. */
export const CHECK_ROUTES = `
GET /public/**: public
GET /invoices/{id}: viewer invoice:{id}
PUT /invoices/{id}: editor invoice:{id}
POST /invoices: {all: ["creator organization:{body.org}", entitlement feature.invoicing]}
GET /orgs/{org}/invoices/{id}: {all: ["active_member organization:{org}", "viewer invoice:{id}"]}
GET /reports: member organization:{query.org}
GET /marked: member organization:{query.my_org}
POST /tasks: viewer task:{body.project_status}/{body.task.id}
GET /by-role: {equals: {header.x-role: admin}}
GET /scoped: {all: [scope invoices:admin, "viewer invoice:1"]}
GET /mine: member organization:{claims.org}
POST /approve: permission invoices:approve
`.trim()
export const CHECK_GRANTS = [
  'alice viewer invoice:1',
  'alice creator organization:acme',
  'alice active_member organization:acme',
  'alice member organization:acme',
  'alice invoices:approve organization:acme',
]
