import { Discount } from "./types";

/** What is left of an amount after a discount; one that has expired or whose minimum is not reached changes nothing. */
export function applyDiscount(cents: number, discount: Discount | null, now: Date): number {
  if (discount === null || isExpired(discount, now) || cents < (discount.minimumCents ?? 0)) {
    return cents;
  }
  const off = discount.cents ?? Math.round((cents * (discount.percent ?? 0)) / 100);
  return Math.max(0, cents - off);
}

export function isExpired(discount: Discount, now: Date): boolean {
  return discount.expires !== undefined && discount.expires.getTime() < now.getTime();
}

const CODE = /^[A-Z0-9]{4,12}$/;

/** Tidies what a customer typed; null where it cannot be a code. */
export function parseCode(typed: string): string | null {
  const code = typed.trim().toUpperCase();
  return CODE.test(code) ? code : null;
}
