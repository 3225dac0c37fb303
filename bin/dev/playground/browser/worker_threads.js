export class Worker {
  constructor() {
    throw new Error('the page has one thread')
  }
}
