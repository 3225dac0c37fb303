/** The page has the files that were opened in it, and no others. */
const none = () => Promise.reject(new Error('the page has no file system'))
export const readFile = none
export const realpath = none
