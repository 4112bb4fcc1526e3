const FREE_FROM_CENTS = 5_000;
const RATES: Record<string, number> = { DE: 490, FR: 690, US: 1490 };
const ELSEWHERE = 1990;

/** Cents for sending goods to a country; nothing above the free limit, but within Europe only. */
export function shippingFor(cents: number, country: string): number {
  const free = cents >= FREE_FROM_CENTS && country !== "US";
  return free ? 0 : (RATES[country] ?? ELSEWHERE);
}
