import { Cart, OutOfStockError } from "../src/cart";

const stock = { available: async () => 3 };
const drafts = { load: async () => null, save: async () => {} };

describe("Cart", () => {
  it("refuses more than there is", async () => {
    const cart = new Cart(stock, drafts);
    await expect(cart.add("mug", 4, 900)).rejects.toBeInstanceOf(OutOfStockError);
  });

  it("adds shipping to the total", async () => {
    const cart = new Cart(stock, drafts);
    await cart.add("mug", 2, 900);
    expect(cart.total("DE")).toBe(2290);
  });
});
