package shop.billing;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;

/** Reminds those who do not pay. */
public class Dunning {
    public enum Step { NONE, REMINDER, WARNING, SUSPEND }

    private final Mailer mailer;
    private final BigDecimal taxRate;

    public Dunning(Mailer mailer, BigDecimal taxRate) {
        this.mailer = mailer;
        this.taxRate = taxRate;
    }

    /** Which step is due: a reminder after a week, a warning after three, and after six the account is closed. */
    public Step stepFor(Invoice invoice, LocalDate today) {
        if (!invoice.isOverdue(today, taxRate)) {
            return Step.NONE;
        }
        long days = ChronoUnit.DAYS.between(invoice.due(), today);
        if (days >= 42) {
            return Step.SUSPEND;
        }
        return days >= 21 ? Step.WARNING : days >= 7 ? Step.REMINDER : Step.NONE;
    }

    /** Writes to the customer, but never on a weekend. */
    public void send(Invoice invoice, LocalDate today) {
        Step step = stepFor(invoice, today);
        if (step != Step.NONE && today.getDayOfWeek().getValue() < 6) {
            mailer.write(invoice.customer(), step.name());
        }
    }
}
