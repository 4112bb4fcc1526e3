package shop.billing;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.math.BigDecimal;
import java.time.LocalDate;
import org.junit.jupiter.api.Test;

class DunningTest {
    @Test
    void afterAWeekComesAReminder() {
        Invoice invoice = new Invoice("mira", LocalDate.of(2024, 1, 1));
        invoice.add(BigDecimal.TEN);
        Dunning dunning = new Dunning((customer, subject) -> {}, BigDecimal.ZERO);
        assertEquals(Dunning.Step.REMINDER, dunning.stepFor(invoice, LocalDate.of(2024, 1, 9)));
    }
}
