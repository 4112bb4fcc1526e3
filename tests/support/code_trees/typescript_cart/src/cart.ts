import { Discount, DraftStore, Line, StockService } from "./types";
import { applyDiscount } from "./discount";
import { shippingFor } from "./shipping";

export class OutOfStockError extends Error {
  constructor(readonly sku: string, readonly left: number) {
    super(`only ${left} of ${sku} left`);
  }
}

/** What a customer is about to buy. */
export class Cart {
  private lines: Line[] = [];
  private discount: Discount | null = null;

  constructor(
    private readonly stock: StockService,
    private readonly drafts: DraftStore,
  ) {}

  /** Puts something in; more of what is there already raises its quantity. Refuses what is not in stock. */
  async add(sku: string, quantity: number, unitCents: number): Promise<void> {
    const line = this.lines.find((each) => each.sku === sku);
    const wanted = quantity + (line?.quantity ?? 0);
    const left = await this.stock.available(sku);
    if (wanted > left) {
      throw new OutOfStockError(sku, left);
    }
    if (line) {
      line.quantity = wanted;
    } else {
      this.lines.push({ sku, quantity, unitCents });
    }
    await this.drafts.save(this.lines);
  }

  async remove(sku: string): Promise<void> {
    this.lines = this.lines.filter((line) => line.sku !== sku);
    await this.drafts.save(this.lines);
  }

  /** Takes up where the customer left off. */
  async restore(): Promise<boolean> {
    const draft = await this.drafts.load();
    if (draft === null || draft.length === 0) {
      return false;
    }
    this.lines = draft;
    return true;
  }

  redeem(discount: Discount): void {
    this.discount = discount;
  }

  /** In cents: all lines, less the discount, plus shipping. */
  total(country: string, now: Date = new Date()): number {
    const goods = this.lines.reduce((sum, line) => sum + line.quantity * line.unitCents, 0);
    const reduced = applyDiscount(goods, this.discount, now);
    return reduced + shippingFor(reduced, country);
  }
}
