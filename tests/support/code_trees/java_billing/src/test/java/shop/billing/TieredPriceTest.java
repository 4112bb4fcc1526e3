package shop.billing;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.math.BigDecimal;
import java.util.List;
import org.junit.jupiter.api.Test;

class TieredPriceTest {
    @Test
    void unitsAboveATierCostLess() {
        PricePolicy price = new TieredPrice(List.of(
            new TieredPrice.Tier(10, BigDecimal.TEN), new TieredPrice.Tier(Long.MAX_VALUE, BigDecimal.ONE)));
        assertEquals(new BigDecimal("105"), price.priceOf(15));
    }
}
