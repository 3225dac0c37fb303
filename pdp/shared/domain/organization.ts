/** Organizations, which form a tree without cycles. */

export type Organization = { readonly id: string; readonly name: string; readonly parent: string | null }
