/** The reason why no configuration can be printed for this route file and this gateway. */
export class PlanError extends Error {
  override readonly name = 'PlanError'
}
