"""Files that are more than text: chats, mail, notebooks, office documents, books (ING-28, ING-30, ING-31)."""
