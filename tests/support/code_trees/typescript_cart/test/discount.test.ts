import { applyDiscount, parseCode } from "../src/discount";

test("an expired discount changes nothing", () => {
  const old = { code: "OLD1", percent: 10, expires: new Date(0) };
  expect(applyDiscount(1000, old, new Date())).toBe(1000);
});

test("codes are tidied", () => {
  expect(parseCode(" save10 ")).toBe("SAVE10");
});
