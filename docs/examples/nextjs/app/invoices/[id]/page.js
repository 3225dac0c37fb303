// A page behind the sidecar. Whoever gets here may read this invoice; the field says who it is.
// Install: npm install next react react-dom
// Start: npx next build && npx next start --hostname 127.0.0.1 --port 3000
import { headers } from 'next/headers'

export default async function Invoice({ params }) {
  const { id } = await params
  const subject = (await headers()).get('x-auth-subject')
  return <p>{`invoice ${id} for ${subject}`}</p>
}
