package shop.billing;

import java.math.BigDecimal;

/** Says what a quantity costs. */
public interface PricePolicy {
    BigDecimal priceOf(long units);
}
