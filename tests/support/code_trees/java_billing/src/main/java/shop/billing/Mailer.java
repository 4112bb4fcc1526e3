package shop.billing;

/** Sends letters to customers. */
public interface Mailer {
    void write(String customer, String subject);
}
