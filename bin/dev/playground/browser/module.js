/** The engine loads one package when it first needs it; here it is in the page. */
import * as openfga from '@openfga/syntax-transformer'

export const createRequire = () => () => openfga
