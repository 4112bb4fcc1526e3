package shop.billing;

import java.math.BigDecimal;
import java.math.RoundingMode;

final class Rounding {
    private Rounding() {}

    /** Half a cent goes to the even neighbour, so that many sums neither gain nor lose. */
    static BigDecimal toCents(BigDecimal amount) {
        return amount.setScale(2, RoundingMode.HALF_EVEN);
    }
}
